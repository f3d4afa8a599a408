package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) signKeyCommand() *cobra.Command {
	bare := false
	cmd := &cobra.Command{
		Use:   "key NAME",
		Short: "Make a pair of keys: NAME.key, to keep secret, and NAME.pub",
		Long: `Make a pair of keys in the form of minisign: NAME.key is secret and signs,
NAME.pub is for those who are to run what you sign. An owner writes the line that is
printed into the setting signers. Files that exist are left alone.`,
		Example: "  submit sign key ada\n  submit sign key ci --no-password",
		Args:    exactly(1, "one name"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.makeKey(args[0], bare) },
	}
	cmd.Flags().BoolVar(&bare, "no-password", false, "keep the secret key without a password")
	return cmd
}

func (a *app) makeKey(name string, bare bool) error {
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	var hidden []byte
	if bare {
		hidden, err = secret.MarshalText()
	} else {
		hidden, err = a.locked(secret)
	}
	if err != nil {
		return err
	}
	shown, err := public.MarshalText()
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	for _, f := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{{name + ".key", hidden, 0o600}, {name + ".pub", shown, 0o644}} {
		if err = writeNew(f.name, append(f.text, '\n'), f.mode); err != nil {
			return err
		}
	}
	a.say("%s.key is secret; %s.pub is for those who are to run what you sign", name, name)
	_, err = fmt.Fprintln(a.out, public.String())
	return err
}

// locked is a secret key under a password, which is asked for.
func (a *app) locked(secret minisign.PrivateKey) ([]byte, error) {
	password, err := a.password("Password for the new key: ")
	if err != nil {
		return nil, err
	}
	if password == "" {
		return nil, usage("the password is empty; --no-password makes a key without one")
	}
	text, err := minisign.EncryptKey(password, secret)
	if err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	return text, nil
}

// writeNew writes a file that must not exist yet.
func writeNew(name string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return usage(
				"%s exists; remove it or take another name: who loses a key signs no more "+
					"with it",
				name,
			)
		}
		return fmt.Errorf("write a key: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// password asks at the terminal, or reads a line of standard input.
func (a *app) password(ask string) (string, error) {
	if file, ok := a.in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		_, _ = io.WriteString(a.err, ask) // nothing is left to tell it to
		text, err := term.ReadPassword(int(file.Fd()))
		a.say("")
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return string(text), nil
	}
	const longest = 1 << 10
	line, err := bufio.NewReader(io.LimitReader(a.in, longest)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
