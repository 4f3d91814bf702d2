// Package lfs reads and writes what git LFS keeps (https://git-lfs.com, version 1
// of its specification): the pointers that stand in a repository for the content of
// large files, and the objects beside it that hold that content. It is a filter of
// git too, so that no program that a repository names has to be one. Nothing here
// reaches a network.
package lfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/safeopen"
)

// Objects are directories of objects as git LFS lays them out: aa/bb/aabb….
type Objects struct {
	Keep string   // where new ones are put; "" for nowhere
	Read []string // where others are found besides, in this order
}

// name is where an object lies below a directory.
func name(oid string) string { return filepath.Join(oid[:2], oid[2:4], oid) }

// open opens an object by its name and size. Its content is to be checked by who
// reads it.
func (o Objects) open(p Pointer) (*os.File, error) {
	for _, dir := range append([]string{o.Keep}, o.Read...) {
		if f := openIn(dir, p); f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("LFS object %s: %w", p.OID[:12], os.ErrNotExist)
}

func openIn(dir string, p Pointer) *os.File {
	if dir == "" {
		return nil
	}
	var nobody *safeopen.Own
	root, err := nobody.Root(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	f, err := root.Open(name(p.OID))
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Size() != p.Size {
		f.Close()
		return nil
	}
	return f
}

// Any reports whether there may be an object at all.
func (o Objects) Any() bool {
	for _, dir := range append([]string{o.Keep}, o.Read...) {
		if f, err := os.Open(dir); err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
			if err == nil {
				return true
			}
		}
	}
	return false
}

// Has reports an object of the right name and size.
func (o Objects) Has(p Pointer) bool {
	f, err := o.open(p)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// Open opens an object whose content is what its name says.
func (o Objects) Open(p Pointer) (*os.File, error) {
	f, err := o.open(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.LimitReader(f, p.Size+1))
	if err == nil {
		err = p.is(sum)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (p Pointer) is(sum hash.Hash) error {
	if hex.EncodeToString(sum.Sum(nil)) != p.OID {
		return fmt.Errorf("LFS object %s holds something else than its name says", p.OID[:12])
	}
	return nil
}

// What begins the name of an object that is being written, and how long one may be.
const (
	unnamed   = ".swarmdeck-"
	maxAdding = 24 * time.Hour
)

// adding is an object that is being written.
type adding struct {
	file *os.File
	sum  hash.Hash
	size int64
}

// add begins an object of any content below a directory.
func add(dir string) (*adding, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(dir, unnamed+"*")) // by one that was killed
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > maxAdding {
			_ = os.Remove(path)
		}
	}
	f, err := os.CreateTemp(dir, unnamed)
	return &adding{file: f, sum: sha256.New()}, err
}

func (a *adding) Write(b []byte) (int, error) {
	n, err := a.file.Write(b)
	a.sum.Write(b[:n])
	a.size += int64(n)
	return n, err
}

// pointer names what was written.
func (a *adding) pointer() Pointer {
	return Pointer{OID: hex.EncodeToString(a.sum.Sum(nil)), Size: a.size}
}

// drop ends it without an object.
func (a *adding) drop() error { return errors.Join(a.file.Close(), os.Remove(a.file.Name())) }

// keep gives the object its name, once all of it is on the disk.
func (a *adding) keep(dir string) error {
	to := filepath.Join(dir, name(a.pointer().OID))
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = a.file.Chmod(0o644)
	}
	if err = errors.Join(err, a.file.Sync(), a.file.Close()); err == nil {
		err = os.Rename(a.file.Name(), to)
	}
	if err != nil {
		_ = os.Remove(a.file.Name())
	}
	return err
}

// Put puts an object into the directory where new ones go, unless one of its name and size is
// there. Its content is checked on the way.
func (o Objects) Put(p Pointer) error {
	if (Objects{Keep: o.Keep}).Has(p) {
		return nil
	}
	from, err := Objects{Read: o.Read}.open(p)
	if err != nil {
		return err
	}
	defer from.Close()
	return o.Take(p, from)
}

// Take puts what is read into the directory where new objects go, if it is this object.
func (o Objects) Take(p Pointer, from io.Reader) error {
	a, err := add(o.Keep)
	if err != nil {
		return err
	}
	_, err = io.Copy(a, io.LimitReader(from, p.Size+1))
	if err == nil {
		err = p.is(a.sum)
	}
	if err != nil {
		return errors.Join(err, a.drop())
	}
	return a.keep(o.Keep)
}

// MaxPointer is what a pointer has at most, in bytes; a larger file is none.
const MaxPointer = 1024

// version is the first line of a pointer.
const version = "version https://git-lfs.github.com/spec/v1"

// Pointer names an object.
type Pointer struct {
	OID  string // the SHA-256 of its content, in hex
	Size int64  // in bytes
	// Extended says that extensions have made the object of the file's content: what
	// they did only they undo.
	Extended bool
}

// Parse reads a pointer; ok is false for what is none.
func Parse(text []byte) (p Pointer, ok bool) {
	head, rest, found := strings.Cut(string(text), "\n")
	if len(text) > MaxPointer || !found || head != version || !strings.HasSuffix(rest, "\n") {
		return p, false
	}
	var last string
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if key <= last { // sorted, each once
			return p, false
		}
		last = key
		switch {
		case key == "oid":
			p.OID, ok = strings.CutPrefix(value, "sha256:")
		case key == "size":
			var err error
			p.Size, err = strconv.ParseInt(value, 10, 64)
			ok = err == nil && strconv.FormatInt(p.Size, 10) == value && p.Size >= 0
		default:
			p.Extended = strings.HasPrefix(key, "ext-")
			ok = p.Extended
		}
		if !ok {
			return p, false
		}
	}
	return p, last == "size" && p.Valid()
}

// Valid reports whether it names an object at all.
func (p Pointer) Valid() bool {
	return len(p.OID) == 64 && strings.Trim(p.OID, "0123456789abcdef") == "" && p.Size >= 0
}

// Text is the pointer as it stands in a repository.
func (p Pointer) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\noid sha256:%s\nsize %d\n", version, p.OID, p.Size)
	return b.Bytes()
}
