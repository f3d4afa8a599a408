package crypt_test

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pair is an ed25519 key made of one byte.
func pair(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(key ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(key[ed25519.SeedSize:])
}

func jobKey(t testing.TB, agent byte, name string) grid.JobKey {
	t.Helper()
	key, err := crypt.Derive(pair(agent), name)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encrypt(t testing.TB, key grid.JobKey, plain string) []byte {
	t.Helper()
	r, err := crypt.Encrypt(key, strings.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func open(key grid.JobKey, text []byte) (string, error) {
	r, err := crypt.Open(key, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	plain, err := io.ReadAll(r)
	return string(plain), err
}

const (
	name  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	other = "abcdefghijklmnopqrstuvwxyz"
)

// A name gives the same key again, and other names and agents other ones.
func TestKeysFollowFromNames(t *testing.T) {
	key := jobKey(t, 1, name)
	if key.Validate() != nil || key != jobKey(t, 1, name) {
		t.Errorf("%d bytes, then another one", len(key))
	}
	if key == jobKey(t, 1, other) || key == jobKey(t, 2, name) {
		t.Error("two jobs have one key")
	}
	for _, bad := range []string{"", "short", strings.Repeat("a", 65), name + "/", name + "\n"} {
		if _, err := crypt.Derive(pair(1), bad); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("the name %q: %v", bad, err)
		}
	}
	if _, err := crypt.Derive(nil, name); !errors.Is(err, crypt.ErrKey) {
		t.Errorf("no agent's key: %v", err)
	}
}

// A key that was encrypted for a site is opened by that site and by nobody else, and not when a bit
// of it is another one.
func TestAKeyIsForOneSite(t *testing.T) {
	key := jobKey(t, 1, name)
	wrapped, err := crypt.Wrap(key, public(pair(7)))
	if err != nil || len(wrapped) > grid.MaxWrappedKey {
		t.Fatalf("%d bytes, %v", len(wrapped), err)
	}
	if bytes.Contains(wrapped, []byte(key)) {
		t.Error("it is in the clear")
	}
	if got, err := crypt.Unwrap(wrapped, pair(7)); err != nil || got != key {
		t.Errorf("its site: %v, the same: %t", err, got == key)
	}
	if got, err := crypt.Unwrap(wrapped, pair(8)); !errors.Is(err, crypt.ErrKey) || got != "" {
		t.Errorf("another site: %v", err)
	}
	for i := range wrapped {
		bad := bytes.Clone(wrapped)
		bad[i] ^= 1
		if got, err := crypt.Unwrap(bad, pair(7)); err == nil && got != key {
			t.Fatalf("byte %d: another key", i)
		}
	}
	long := make([]byte, grid.MaxWrappedKey+1)
	for _, bad := range [][]byte{nil, wrapped[:len(wrapped)-1], long} {
		if _, err := crypt.Unwrap(bad, pair(7)); !errors.Is(err, crypt.ErrKey) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	if _, err := crypt.Wrap(key, nil); !errors.Is(err, crypt.ErrKey) {
		t.Errorf("for nobody: %v", err)
	}
	if _, err := crypt.Wrap("no key", public(pair(7))); err == nil ||
		strings.Contains(err.Error(), "no key") {
		t.Errorf("what is no key: %v", err)
	}
}

// What was encrypted comes back whole, of every size around those of the format's chunks, and its
// size is known before.
func TestContentComesBack(t *testing.T) {
	key := jobKey(t, 1, name)
	for _, size := range []int{0, 1, 65_535, 65_536, 65_537, 131_072, 300_000} {
		plain := strings.Repeat("m", size)
		text := encrypt(t, key, plain)
		if got, err := open(key, text); err != nil || got != plain {
			t.Errorf("%d bytes: %d come back, %v", size, len(got), err)
		}
		if most := grid.EncryptedBytes(int64(size)); int64(len(text)) > most {
			t.Errorf("%d bytes take %d, more than %d", size, len(text), most)
		}
		head := text[:min(len(text), crypt.HeadBytes)]
		if n, err := crypt.PlainBytes(head, int64(len(text))); err != nil || n != int64(size) {
			t.Errorf("%d bytes are said to be %d, %v", size, n, err)
		}
	}
}

// Content with a change, cut short, made longer, of another job, or in the clear is refused at its
// end at the latest, and its error says that it is the content's.
func TestDamagedContentIsRefused(t *testing.T) {
	key := jobKey(t, 1, name)
	text := encrypt(t, key, strings.Repeat("secret ", 20_000))
	changed := map[string][]byte{
		"nothing": nil, "in the clear": []byte("secret"), "longer": append(bytes.Clone(text), 0),
		"of another job": encrypt(t, jobKey(t, 1, other), "secret"),
		"an endless head": append([]byte("age-encryption.org/v1\n"),
			bytes.Repeat([]byte("-> x "+strings.Repeat("y", 60)+"\n\n"), 10_000)...),
	}
	for _, at := range []int{0, 30, 100, 200, 65_800, 66_000, len(text) - 1} {
		one := bytes.Clone(text)
		one[at] ^= 1
		changed[fmt.Sprintf("byte %d", at)] = one
		changed[fmt.Sprintf("cut to %d", at)] = text[:at]
	}
	for what, text := range changed {
		if got, err := open(key, text); !errors.Is(err, crypt.ErrDamaged) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
		if err := crypt.Check(key, bytes.NewReader(text)); !errors.Is(err, crypt.ErrDamaged) {
			t.Errorf("%s is taken: %v", what, err)
		}
	}
	if err := crypt.Check(key, bytes.NewReader(text)); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// A disk that fails is not taken for a forgery.
func TestWhoseFaultItIs(t *testing.T) {
	key := jobKey(t, 1, name)
	text := encrypt(t, key, strings.Repeat("x", 100_000))
	for _, at := range []int{10, 90_000} {
		broken := io.MultiReader(bytes.NewReader(text[:at]), failing{})
		if err := crypt.Check(key, broken); !errors.Is(err, fs.ErrPermission) ||
			errors.Is(err, crypt.ErrDamaged) {
			t.Errorf("after %d bytes: %v", at, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, fs.ErrPermission }

// A directory comes back with its names, contents and x bits, and with nothing else.
func TestADirectoryComesBack(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	for path, mode := range map[string]os.FileMode{"a": 0o644, "b/c": 0o755, "b/d/e": 0o600} {
		at := filepath.Join(from, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("text of "+path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	packed, err := crypt.Pack(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err = crypt.Unpack(packed, to, 1<<20); err != nil {
		t.Fatal(err)
	}
	const want = "a -rw------- text of a\nb drwx------\nb/c -rwx------ text of b/c\n" +
		"b/d drwx------\nb/d/e -rw------- text of b/d/e\nempty drwx------\n"
	if got := listing(t, to); got != want {
		t.Errorf("there is\n%swant\n%s", got, want)
	}
	if err = os.Symlink("a", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if packed, err = crypt.Pack(from); err == nil {
		_, err = io.Copy(io.Discard, packed)
	}
	if err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link is packed: %v", err)
	}
	if _, err = crypt.Pack(filepath.Join(from, "a")); err == nil {
		t.Error("a file is packed as a directory")
	}
}

// listing has what lies below a directory.
func listing(t testing.TB, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%s %s", filepath.ToSlash(name), info.Mode())
		if !d.IsDir() {
			text, wrong := os.ReadFile(path)
			if wrong != nil {
				return wrong
			}
			fmt.Fprintf(&all, " %s", text)
		}
		all.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// archive is a tar stream of one entry.
func archive(t testing.TB, h tar.Header, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if h.Typeflag == 0 {
		h.Typeflag = tar.TypeReg
	}
	if h.Size == 0 {
		h.Size = int64(len(content))
	}
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil && h.Size == int64(len(content)) {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Archives that would write elsewhere, make links, or grow are refused, and leave nothing.
func TestArchivesThatAreRefused(t *testing.T) {
	good := archive(t, tar.Header{Name: "a"}, "text")
	twice := append(good[:1024:1024], good...)
	typed := func(kind byte, to string) []byte {
		return archive(t, tar.Header{Name: "a", Typeflag: kind, Linkname: to}, "")
	}
	for what, packed := range map[string][]byte{
		"upwards":     archive(t, tar.Header{Name: "../a"}, "text"),
		"absolute":    archive(t, tar.Header{Name: "/a"}, "text"),
		"a link":      typed(tar.TypeSymlink, "/etc"),
		"a hard link": typed(tar.TypeLink, "b"),
		"a pipe":      typed(tar.TypeFifo, ""),
		"larger":      archive(t, tar.Header{Name: "a"}, strings.Repeat("x", 5000)),
		"twice":       twice,
		"cut":         good[:514],
		"no archive":  bytes.Repeat([]byte("secret "), 200),
	} {
		folder := filepath.Join(t.TempDir(), "to")
		err := crypt.Unpack(bytes.NewReader(packed), folder, 4096)
		if !errors.Is(err, crypt.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), "*")); len(left) > 0 {
			t.Errorf("%s leaves %q", what, left)
		}
	}
	here := filepath.Join(t.TempDir(), "to")
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := crypt.Unpack(bytes.NewReader(good), here, 4096); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
}

// A directory whose end was changed on the way is not laid out.
func TestADirectoryIsReadToItsEnd(t *testing.T) {
	key := jobKey(t, 1, name)
	packed := archive(t, tar.Header{Name: "a"}, "text")
	text := encrypt(t, key, string(packed)+strings.Repeat("\x00", 200_000)) // chunks behind its end
	text[len(text)-1] ^= 1
	r, err := crypt.Open(key, bytes.NewReader(text))
	folder := filepath.Join(t.TempDir(), "to")
	if err == nil {
		err = crypt.Unpack(r, folder, 4096)
	}
	if _, there := os.Stat(folder); !errors.Is(err, crypt.ErrDamaged) || there == nil {
		t.Errorf("%v, and there: %v", err, there)
	}
}
