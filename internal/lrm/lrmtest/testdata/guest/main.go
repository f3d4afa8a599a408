// The guest is the program that the conformance suite runs: one verb, then its
// operands.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	verbs := systemVerbs()
	for verb, do := range map[string]func(args []string) error{
		"exit": exit, "say": say, "cat": cat, "ls": ls, "put": put, "tree": tree, "link": link,
		"spoil": spoil, "spin": spin, "tick": tick, "hog": hog, "flood": flood, "fill": fill,
		"churn": churn, "panic": crash, "random": random, "clock": clock,
		"reach": reach, "seek": seek, "start": start, "outputs": outputs,
	} {
		verbs[verb] = do
	}
	verb, ok := verbs[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown verb", os.Args[1])
		os.Exit(99)
	}
	if err := verb(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func exit(args []string) error {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// say prints its arguments, the environment and what it read.
func say(args []string) error {
	input, err := io.ReadAll(os.Stdin)
	fmt.Printf("args=%s\nGREETING=%s\nHOME=%s\nstdin=%q\n",
		strings.Join(args, "|"), os.Getenv("GREETING"), os.Getenv("HOME"), input)
	fmt.Fprintln(os.Stderr, "on stderr")
	return err
}

func cat(args []string) error {
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		os.Stdout.Write(text)
	}
	return nil
}

// ls prints the tree below each argument.
func ls(args []string) error {
	for _, name := range args {
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				path += "/"
			}
			fmt.Println(path)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func put(args []string) error { return os.WriteFile(args[0], []byte(args[1]), 0o644) }

// tree does what programs do with files, below its argument.
func tree(args []string) error {
	dir := filepath.Join(args[0], "a", "b")
	name := filepath.Join(dir, "one")
	step := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	appendTo := func() error {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("two")
		return errors.Join(err, f.Close())
	}
	err := errors.Join(
		step("mkdir", os.MkdirAll(dir, 0o755)),
		step("write", os.WriteFile(name, []byte("one"), 0o644)),
		step("append", appendTo()),
		step("rename", os.Rename(name, filepath.Join(args[0], "moved"))),
		step("write", os.WriteFile(name, []byte("again"), 0o644)),
		step("rename over", os.Rename(name, filepath.Join(args[0], "moved2"))),
		step("rmdir", os.Remove(dir)),
		step("mtime", os.Chtimes(filepath.Join(args[0], "moved"), time.Unix(1000, 0), time.Unix(1000, 0))),
	)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(args[0], "moved"))
	if err != nil {
		return err
	}
	if info.Size() != 6 || info.ModTime().Unix() != 1000 {
		return fmt.Errorf("moved: %d bytes of %s", info.Size(), info.ModTime())
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what was moved is still there: %v", err)
	}
	return ls(args)
}

// link tries to reach a file of the host: by a link that it makes, and by a path.
func link(args []string) error {
	made := 0
	for i, target := range args {
		name := "/out/link" + strconv.Itoa(i)
		if os.Symlink(target, name) == nil {
			made++
		}
		for _, path := range []string{name, target, "/out/" + target, "/out/../" + target} {
			if text, err := os.ReadFile(path); err == nil {
				fmt.Printf("leaked %s: %.40s\n", path, text)
				os.Exit(3)
			}
		}
		if os.Link(target, name+"h") == nil {
			made++
		}
	}
	fmt.Println("contained")
	return nil
}

// spoil tries to change inputs and fails if one of the tries succeeds.
func spoil(args []string) error {
	for _, name := range args {
		tries := map[string]func() error{
			"write":    func() error { return os.WriteFile(name, []byte("x"), 0o644) },
			"truncate": func() error { return os.Truncate(name, 0) },
			"append": func() error {
				_, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
				return err
			},
			"remove": func() error { return os.Remove(name) },
			"rename": func() error { return os.Rename(name, name+"2") },
			"beside": func() error { return os.WriteFile(name+"/new", []byte("x"), 0o644) },
			"mkdir":  func() error { return os.Mkdir(name+"/sub", 0o755) },
			"overwrite": func() error {
				if err := os.WriteFile("/out/mine", []byte("x"), 0o644); err != nil {
					return nil
				}
				return os.Rename("/out/mine", name)
			},
		}
		for what, try := range tries {
			if try() == nil {
				return fmt.Errorf("%s %s succeeded", what, name)
			}
		}
	}
	fmt.Println("unspoilt")
	return nil
}

func spin([]string) error {
	fmt.Println("spinning")
	for i := 0; ; i++ {
		if i < 0 {
			return nil
		}
	}
}

// tick prints numbers, a few ms apart.
func tick(args []string) error {
	n, err := strconv.Atoi(args[0])
	for i := range n {
		fmt.Println("tick", i)
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// hog takes memory as fast as it can, or slowly, so that it is seen doing so before the kernel
// refuses more.
func hog(args []string) error {
	var all [][]byte
	for {
		if len(args) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = byte(i)
		}
		all = append(all, block)
		if len(all) > 1<<12 {
			return errors.New("4 GiB and no end")
		}
	}
}

func flood(args []string) error {
	line := strings.Repeat("flood ", 1000)
	to := os.Stdout
	if len(args) > 0 {
		to = os.Stderr
	}
	for {
		fmt.Fprintln(to, line)
	}
}

// fill writes without end, in the way its first argument names.
func fill(args []string) error {
	block := make([]byte, 64<<10)
	switch args[0] {
	case "one":
		f, err := os.Create(args[1])
		for err == nil {
			_, err = f.Write(block)
		}
		return err
	case "many":
		for i := 0; ; i++ {
			if err := os.WriteFile(args[1]+strconv.Itoa(i), block, 0o644); err != nil {
				return err
			}
		}
	case "hidden", "empty", "deep":
		return fillOddly(args[0], args[1])
	case "hole":
		f, err := os.Create(args[1])
		if err != nil {
			return err
		}
		return f.Truncate(1 << 40)
	default: // files without a name
		for i := 0; ; i++ {
			f, err := os.Create(args[1])
			if err == nil {
				_, err = f.Write(block)
			}
			if err == nil {
				err = os.Remove(args[1])
			}
			if err != nil {
				return err
			}
		}
	}
}

// churn writes much but keeps little.
func churn(args []string) error {
	block := make([]byte, 64<<10)
	for range 100 {
		if err := os.WriteFile(args[0], block, 0o644); err != nil {
			return err
		}
		if err := os.Remove(args[0]); err != nil {
			return err
		}
	}
	return os.WriteFile(args[0], block, 0o644)
}

func crash([]string) error {
	var none []int
	fmt.Println(none[len(os.Args)])
	return nil
}

func random([]string) error {
	f := make(map[int]int)
	for i := range 16 {
		f[i] = i
	}
	for k := range f { // the order is random by the seed of the run
		fmt.Print(k, " ")
	}
	return nil
}

func clock([]string) error {
	before := time.Now()
	time.Sleep(2 * time.Second / 10)
	took := time.Since(before)
	fmt.Println(before.UTC().Year(), took >= 200*time.Millisecond && took < 300*time.Millisecond)
	return nil
}
