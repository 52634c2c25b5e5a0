from dnnlib.cli import main

main()
