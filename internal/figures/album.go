package figures

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrForeign refuses to overwrite a file that this package did not write.
var ErrForeign = errors.New("not a figure of gridsim")

// Album names directories for figures, one for each form; empty for none of that form.
type Album struct{ SVG, PNG string }

// Empty says that no figures are wanted.
func (a Album) Empty() bool { return a.SVG == "" && a.PNG == "" }

// Open makes the directories, so that a long run does not end with an error that could have been
// told before.
func (a Album) Open() error {
	for _, dir := range []string{a.SVG, a.PNG} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("directory for figures: %w", err)
		}
	}
	return nil
}

// figure is drawn onto a canvas of its size.
type figure struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// save writes a figure in all forms that are wanted.
func (a Album) save(name string, f figure) error {
	for _, form := range []struct {
		dir, suffix string
		bytes       func(figure) ([]byte, error)
	}{{a.SVG, ".svg", svgBytes}, {a.PNG, ".png", pngBytes}} {
		if form.dir == "" {
			continue
		}
		drawn, err := form.bytes(f)
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
		if err := write(filepath.Join(form.dir, name+form.suffix), drawn); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file only if it is a figure of ours.
func write(path string, drawn []byte) error {
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("figure: %w", err)
	case !bytes.Contains(old[:min(len(old), 1024)], []byte(signature)):
		return fmt.Errorf("%s is %w: it stays; name another directory, or move it away",
			path, ErrForeign)
	}
	if err := os.WriteFile(path, drawn, 0o600); err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return nil
}

// signature is in the first bytes of every figure.
const signature = "a figure of gridsim"

func svgBytes(f figure) ([]byte, error) {
	canvas := vgsvg.New(f.width, f.height)
	f.draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	drawn := bytes.Replace(out.Bytes(), []byte("<svg "), []byte("<!-- "+signature+" -->\n<svg "), 1)
	// Who has not that very font sees one as wide.
	return bytes.ReplaceAll(drawn, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// dotsPerInch keeps text readable on a screen and on paper.
const dotsPerInch = 144

func pngBytes(f figure) ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dotsPerInch))
	f.draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
		return nil, err
	}
	return signed(out.Bytes())
}

// signed puts the signature behind the header of a PNG, as a chunk of text.
func signed(drawn []byte) ([]byte, error) {
	const header = 8 + 12 + 13 // the magic number, and the chunk IHDR
	if len(drawn) < header {
		return nil, errors.New("no PNG")
	}
	data := []byte("tEXtSoftware\x00" + signature)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)-4))
	chunk = append(chunk, data...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(data))
	return append(append(drawn[:header:header], chunk...), drawn[header:]...), nil
}
