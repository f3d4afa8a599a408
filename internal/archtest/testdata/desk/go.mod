module github.com/mrsmesh/mrsmesh

go 1.26.0
