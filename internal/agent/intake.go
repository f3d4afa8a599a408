package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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
// most of that; when that process fails, and for small content, the agent does all of it.
func (a *Agent) takeIn(ctx context.Context, c intake.Content, size int64) (data.Ref, error) {
	if a.intake == nil || size < intakeFrom {
		return intake.Here(ctx, a.data, c)
	}
	ref, err := a.intake.Take(ctx, a.data, c)
	if errors.Is(err, intake.ErrProcess) && ctx.Err() == nil {
		a.log.Warn("the agent takes in content at its own priority", "why", err)
		return intake.Here(ctx, a.data, c)
	}
	return ref, err
}

// addPath stores a file or directory of this machine, encrypted if there is a key.
func (a *Agent) addPath(
	ctx context.Context, key grid.JobKey, path string, dir bool,
) (data.Ref, error) {
	if dir {
		return a.takeIn(ctx, intake.Content{Dir: path, Key: key}, sizeOfDir(path))
	}
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
	return a.takeIn(ctx, intake.Content{File: f, Executable: executable, Key: key}, info.Size())
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
