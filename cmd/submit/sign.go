package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// signing holds what submit sign was told.
type signing struct {
	key  string // file of the secret key
	out  string // file of the signature; empty: beside the file
	text bool   // print what is to be signed, and sign nothing
}

func (a *app) signCommand() *cobra.Command {
	var s signing
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a job file or a WASM module, for sites that run signed work only",
		Long: `Sign a job file or a WASM module with a key of minisign, and write FILE.minisig.

Of a job file all is signed that changes what is run: the program, arguments,
variables, resources, the content of modules and inputs, and every item. When and
where it runs may change. The agent works the content out, so it must run; nothing
is submitted. Name the signature in the job file (signature: FILE.minisig).

Who signs a module alone vouches for it with any arguments and inputs (key
module-signature in the job file).

submit sign key makes a pair of keys; the minisign tool makes and takes the same.
A key with a password asks for it, or reads a line from standard input.`,
		Example: "  submit sign key ada\n  submit sign job.yaml --key ada.key\n" +
			"  submit sign pi.wasm --key ada.key\n" +
			"  submit sign job.yaml --text > text\n" +
			"  minisign -S -s ada.key -m text -x job.yaml.minisig",
		Args: exactly(1, "one job file or module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.sign(cmd.Context(), args[0], s)
		},
	}
	cmd.Flags().StringVar(&s.key, "key", a.usualKey(), "file of the secret key")
	cmd.Flags().StringVar(&s.out, "signature", "", "file to write; FILE.minisig if left out")
	cmd.Flags().BoolVar(&s.text, "text", false,
		"print what is to be signed of a job file, and sign nothing")
	a.outsideFlag(cmd)
	cmd.AddCommand(a.signKeyCommand())
	return cmd
}

// usualKey names the secret key as the minisign tool does.
func (a *app) usualKey() string {
	home, _ := a.env("HOME") // empty: below the present directory
	return filepath.Join(home, ".minisign", "minisign.key")
}

// statement says what is signed of a file.
type statement struct {
	digest  string // BLAKE2b-512
	comment string // for the trusted comment
	hint    string // how the job file names the signature
	text    string // of a job; empty for a module
}

// stateFile works out what is to be signed of a file.
func (a *app) stateFile(ctx context.Context, name string) (statement, error) {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return statement{}, usage("read what to sign: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	magic := make([]byte, 4)
	n, err := io.ReadFull(file, magic)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return statement{}, usage("read what to sign: %w", err)
	}
	if string(magic[:n]) == "\x00asm" {
		h := signed.Hash()
		_, _ = h.Write(magic) // a hash takes everything
		if _, err = io.Copy(h, file); err != nil {
			return statement{}, fmt.Errorf("read %s: %w", name, err)
		}
		return statement{
			digest: hex.EncodeToString(h.Sum(nil)), comment: "file:" + filepath.Base(name),
			hint: "module-signature",
		}, nil
	}
	prepared, err := a.prepare(ctx, name)
	if err != nil {
		return statement{}, err
	}
	return statement{
		digest: signed.Digest(prepared.Text), comment: prepared.Comment(), text: prepared.Text,
		hint: "signature",
	}, nil
}

// prepare stores a job's inputs at the agent, which works out their identifiers.
func (a *app) prepare(ctx context.Context, name string) (signed.Prepared, error) {
	source, err := a.readFile(name)
	if err != nil {
		return signed.Prepared{}, err
	}
	if jobfile.IsFlow(source.data) || jobfile.IsTES(source.data) {
		return signed.Prepared{}, usage(
			"%s: only the file of one job can be signed, or a WASM module",
			source.shown,
		)
	}
	options := a.readingOf(source)
	options.Unsigned = true
	plan, err := jobfile.Load(source.data, source.folder, options)
	if err != nil {
		return signed.Prepared{}, err
	}
	stored, err := a.storeAll(ctx, plan)
	if err != nil {
		return signed.Prepared{}, err
	}
	return plan.Prepare(stored)
}

func (a *app) sign(ctx context.Context, name string, s signing) error {
	what, err := a.stateFile(ctx, name)
	if err != nil {
		return err
	}
	if s.text {
		if what.text == "" {
			return usage("--text is about job files; of a module its bytes are signed")
		}
		_, err = io.WriteString(a.out, what.text)
		return err
	}
	secret, err := a.secretKey(s.key)
	if err != nil {
		return err
	}
	text, err := signText(secret, what, a.now().Unix())
	if err != nil {
		return err
	}
	if s.out == "" {
		s.out = name + ".minisig"
	}
	if err = os.WriteFile(s.out, text, 0o644); err != nil { //nolint:gosec // it is no secret
		return fmt.Errorf("write the signature: %w", err)
	}
	a.say("%s: signed by key %016X; in the job file: %s: %s",
		s.out, secret.ID(), what.hint, filepath.Base(s.out))
	return nil
}

// signText makes the file of a signature. minisign signs the digest of a file; given the digest
// for the file, and without hashing it again, the library signs the same.
func signText(secret minisign.PrivateKey, what statement, unix int64) ([]byte, error) {
	digest, err := hex.DecodeString(what.digest)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	var s minisign.Signature
	err = s.UnmarshalText(minisign.SignWithComments(secret, digest,
		fmt.Sprintf("timestamp:%d %s", unix, clean(what.comment)),
		fmt.Sprintf("signature by key %016X", secret.ID())))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	s.Algorithm = minisign.HashEdDSA
	return s.MarshalText()
}

// maxKeyFile bounds what is read of a file with a key.
const maxKeyFile = 4 << 10

// secretKey reads a secret key, and asks for its password if it has one.
func (a *app) secretKey(name string) (minisign.PrivateKey, error) {
	var key minisign.PrivateKey
	text, err := readSome(name, maxKeyFile)
	if err != nil {
		return key, usage("read the secret key: %w; `submit sign key` makes one", err)
	}
	if !minisign.IsEncrypted(text) {
		if err = key.UnmarshalText(bytes.TrimSpace(text)); err != nil {
			return key, usage("%s is no secret key of minisign: %w", name, err)
		}
		return key, nil
	}
	password, err := a.password("Password of " + name + ": ")
	if err != nil {
		return key, err
	}
	if key, err = minisign.DecryptKey(password, bytes.TrimSpace(text)); err != nil {
		return key, usage("%s: the password is wrong, or the file is damaged", name)
	}
	return key, nil
}

// readSome reads a file that must be small.
func readSome(name string, most int64) ([]byte, error) {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return text, err
}

func (a *app) verifyCommand() *cobra.Command {
	key, signature := "", ""
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Say whether a job file's or a module's signature is good",
		Long: `Say whether FILE.minisig is a good signature of a job file or a WASM module by a
key. The key is a .pub file of minisign or the key itself. The code is 1 if it is not.`,
		Example: "  submit verify job.yaml --key ada.pub\n" +
			"  submit verify pi.wasm --key " +
			"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
		Args: exactly(1, "one job file or module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usage("verify: by whom? Give --key FILE.pub, or the key itself")
			}
			if signature == "" {
				signature = args[0] + ".minisig"
			}
			return a.verify(cmd.Context(), args[0], key, signature)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key, or the file that has it")
	cmd.Flags().StringVar(&signature, "signature", "", "file to look at; FILE.minisig if left out")
	a.outsideFlag(cmd)
	return cmd
}

func (a *app) verify(ctx context.Context, name, key, signature string) error {
	public := key
	if text, err := readSome(key, maxKeyFile); err == nil {
		if public, err = signed.PublicKey(text); err != nil {
			return usage("%s: %w", key, err)
		}
	}
	id, err := signed.KeyID(public)
	if err != nil {
		return usage("--key: %w", err)
	}
	file, err := readSome(signature, grid.MaxSignatureText)
	if err != nil {
		return usage("read the signature: %w; `submit sign` makes one", err)
	}
	what, err := a.stateFile(ctx, name)
	if err != nil {
		return err
	}
	if err = signed.Verify(public, what.digest, file); err != nil {
		text := strings.TrimPrefix(err.Error(), grid.ErrInvalid.Error()+": ")
		return fmt.Errorf("%s is no good signature of %s: %s", signature, name, text)
	}
	a.say("%s: signed by key %s", name, id)
	return nil
}
