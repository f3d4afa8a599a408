package crypt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ErrKey says that a key does not open what is to be opened, or is none. It never holds a key.
var ErrKey = errors.New("the key does not open it")

// jobContext keeps keys of jobs apart from all else that is made of an agent's key.
const jobContext = "mrs job key 1 "

// Derive makes the key of the job with a name, for an agent with its own key: the same name gives
// the same key, so that nothing has to be kept between an upload and the job that it is for.
func Derive(own ed25519.PrivateKey, name string) (grid.JobKey, error) {
	if err := grid.ValidateKeyName(name); err != nil {
		return "", err
	}
	if len(own) != ed25519.PrivateKeySize {
		return "", fmt.Errorf("%w: want an agent's ed25519 key", ErrKey)
	}
	seed, err := hkdf.Key(sha256.New, own.Seed(), nil, jobContext+name, ed25519.SeedSize)
	if err != nil {
		return "", fmt.Errorf("make a job's key: %w", err)
	}
	return grid.JobKey(hex.EncodeToString(seed)), nil
}

// Wrap encrypts a job's key for the site with an ed25519 key: at most grid.MaxWrappedKey bytes.
func Wrap(key grid.JobKey, site ed25519.PublicKey) ([]byte, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	if len(site) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: the site has no ed25519 key", ErrKey)
	}
	public, err := ssh.NewPublicKey(site)
	if err != nil {
		return nil, fmt.Errorf("encrypt a key: %w", err)
	}
	recipient, err := agessh.NewEd25519Recipient(public)
	if err != nil {
		return nil, fmt.Errorf("encrypt a key: %w", err)
	}
	seed, err := hex.DecodeString(string(key))
	if err != nil {
		return nil, fmt.Errorf("encrypt a key: %w", ErrKey)
	}
	var out bytes.Buffer
	to, err := age.Encrypt(&out, recipient)
	if err == nil {
		_, err = to.Write(seed)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt a key: %w", err)
	}
	return out.Bytes(), nil
}

// Unwrap opens a job's key that was encrypted for the site with its own key. Its error is ErrKey.
func Unwrap(wrapped []byte, own ed25519.PrivateKey) (grid.JobKey, error) {
	if len(wrapped) > grid.MaxWrappedKey {
		return "", fmt.Errorf("%w: it takes %d bytes, want at most %d",
			ErrKey, len(wrapped), grid.MaxWrappedKey)
	}
	if len(own) != ed25519.PrivateKeySize {
		return "", fmt.Errorf("%w: want a site's ed25519 key", ErrKey)
	}
	identity, err := agessh.NewEd25519Identity(own)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrKey, err)
	}
	plain, err := age.Decrypt(bytes.NewReader(wrapped), identity)
	if err != nil {
		return "", fmt.Errorf("%w: it is for another site, or damaged: %w", ErrKey, err)
	}
	seed, err := io.ReadAll(io.LimitReader(plain, ed25519.SeedSize+1))
	if err != nil || len(seed) != ed25519.SeedSize {
		return "", fmt.Errorf("%w: it is damaged", ErrKey)
	}
	return grid.JobKey(hex.EncodeToString(seed)), nil
}

// identity is a job's key as age has it.
func identity(key grid.JobKey) (*agessh.Ed25519Identity, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(string(key))
	if err != nil {
		return nil, ErrKey
	}
	id, err := agessh.NewEd25519Identity(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return id, nil
}
