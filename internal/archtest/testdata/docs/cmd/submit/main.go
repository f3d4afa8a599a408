package main // want "cmd/submit has no package doc"

func main() {}
