package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	// intakeFrom is the size, in bytes, from which content is taken in by a process of its own. The
	// start of one takes as long as some MiB do.
	intakeFrom = 8 << 20
	// intakePerFile counts for each file or directory, besides its content.
	intakePerFile = 4 << 10
)

// newIntake is nil without a command.
func newIntake(command []string) *intake.Intake {
	if len(command) == 0 {
		return nil
	}
	return intake.New(command)
}

// takeIn stores content of this machine. If it is large, a process of the lowest priority does
// most of that; when that process fails, and for small content, here does all of it.
func (a *Agent) takeIn(
	ctx context.Context, c intake.Content, size int64, here func() (data.Ref, error),
) (data.Ref, error) {
	if a.intake == nil || size < intakeFrom {
		return here()
	}
	ref, err := a.intake.Take(ctx, a.data, c)
	if errors.Is(err, intake.ErrProcess) && ctx.Err() == nil {
		a.log.Warn("the agent takes in content at its own priority", "why", err)
		return here()
	}
	return ref, err
}

// addPath stores a file or directory of this machine, encrypted if there is a key.
func (a *Agent) addPath(
	ctx context.Context, key grid.JobKey, path string, dir bool,
) (data.Ref, error) {
	if !dir {
		return a.addFile(ctx, key, path)
	}
	c := intake.Content{Dir: path, Key: key}
	return a.takeIn(ctx, c, sizeOfDir(path), func() (data.Ref, error) {
		if key == "" {
			return a.data.AddDir(ctx, path)
		}
		packed, err := crypt.Pack(path)
		if err != nil {
			return data.Ref{}, err
		}
		defer func() { _ = packed.Close() }() // only read from
		return a.AddEncrypted(ctx, key, packed, false)
	})
}

func (a *Agent) addFile(ctx context.Context, key grid.JobKey, path string) (data.Ref, error) {
	f, err := openRegular(path)
	if err != nil {
		return data.Ref{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return data.Ref{}, fmt.Errorf("look at %s: %w", path, err)
	}
	executable := info.Mode()&0o100 != 0 // the owner's x bit
	c := intake.Content{File: f, Executable: executable, Key: key}
	return a.takeIn(ctx, c, info.Size(), func() (data.Ref, error) {
		switch {
		case key != "":
			return a.AddEncrypted(ctx, key, f, executable)
		case executable:
			return a.data.AddExecutable(ctx, f)
		default:
			return a.data.AddFile(ctx, f)
		}
	})
}

// sizeOfDir adds up a directory until it is large. Who reads the directory finds what is wrong with
// it.
func sizeOfDir(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		size += intakePerFile
		if entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		if size >= intakeFrom {
			return filepath.SkipAll
		}
		return nil
	})
	return size
}
