from dnnbook.cli import main

main()
