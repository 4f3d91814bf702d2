// Package lfs reads and writes what git LFS keeps (https://git-lfs.com, version 1
// of its specification): the pointers that stand in a repository for the content of
// large files, and the objects beside it that hold that content. It is a filter of
// git too, so that no program that a repository names has to be one. Nothing here
// reaches a network.
package lfs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

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
