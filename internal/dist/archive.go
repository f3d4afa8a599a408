package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// sumsFile has the checksums of all else, as sha256sum -c reads them.
const sumsFile = "SHA256SUMS"

// archive packs the files of a target into one folder, as below /usr/local or ~/.local.
func (r *release) archive(t target, all []content) error {
	base := r.base(t)
	var packed bytes.Buffer
	small := gzip.NewWriter(&packed)
	w := tar.NewWriter(small)
	for _, c := range sorted(all) {
		data, err := c.bytes()
		if err != nil {
			return err
		}
		err = w.WriteHeader(&tar.Header{
			Name: filepath.Base(base) + "/" + c.path, Mode: int64(c.mode), Size: int64(len(data)),
			ModTime: time.Unix(r.epoch, 0), Format: tar.FormatPAX, Uname: "root", Gname: "root",
		})
		if err != nil {
			return err
		}
		if _, err = w.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := small.Close(); err != nil {
		return err
	}
	return publish(base+".tar.gz", packed.Bytes())
}

// publish writes a file for others to read, as far as the user's mask lets them.
func publish(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// writeSums writes the checksums of all files in a folder.
func writeSums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return publish(filepath.Join(dir, sumsFile), sums.Bytes())
}
