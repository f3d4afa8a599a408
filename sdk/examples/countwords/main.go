// Command countwords counts the words of the files that it is given, each on some machine of the
// mesh, and prints the counts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/mrsmesh/mrsmesh/sdk/mesh"
)

func main() {
	log.SetFlags(0)
	if err := count(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func count(ctx context.Context, files []string) error {
	m, err := mesh.Open()
	if err != nil {
		return err
	}
	defer m.Close()
	jobs := make([]mesh.ID, len(files))
	for i, file := range files { // all are under way before the first is waited for
		text, err := m.PutFile(ctx, file)
		if err != nil {
			return err
		}
		jobs[i], err = m.Submit(ctx, mesh.Job{
			Name:    filepath.Base(file),
			Command: []string{"sh", "-c", "wc -w < text > count"},
			Inputs:  map[string]mesh.Data{"text": text},
			Outputs: []string{"count"},
		})
		if err != nil {
			return err
		}
	}
	for i, job := range jobs {
		if _, err := m.Wait(ctx, job); err != nil {
			return err
		}
		words, err := output(ctx, m, job)
		if err != nil {
			return err
		}
		fmt.Println(strings.TrimSpace(words), files[i])
	}
	return nil
}

func output(ctx context.Context, m *mesh.Mesh, job mesh.ID) (string, error) {
	body, err := m.Output(ctx, job, 0, "count")
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(body)
	return string(text), errors.Join(err, body.Close())
}
