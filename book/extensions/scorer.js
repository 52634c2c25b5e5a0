// The search puts those pages first whose own title has every word that is looked for: chapters above the engine's.
var Scorer = {
  score: ([page, title, , , score]) => {
    const split = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    const asked = split(new URLSearchParams(location.search).get("q") ?? "");
    const own = split(title.split(" > ")[0]);
    if (!/^(book|notebooks)\//.test(page) || page.startsWith("book/api") || !asked.length) return score;
    return asked.every((word) => own.includes(word)) ? score + 50 : score;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,  // Sphinx's own
};
