// Package web has the agent's page as static files.
package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed dist
var files embed.FS

// Handler serves the page. It shows nothing of the agent.
func Handler() http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // the name is fixed
	}
	return http.FileServerFS(dist)
}
