package pipe

import (
	"fmt"
	"os"
)

// Streams are three pipes in the place of a process's standard input, output and error:
// its user has ours, and who stands for the process theirs.
func Streams() (ours, theirs [3]*os.File, err error) {
	for n := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			CloseAll(ours)
			CloseAll(theirs)
			return ours, theirs, fmt.Errorf("make a pipe: %w", err)
		}
		if ours[n], theirs[n] = r, w; n == 0 {
			ours[n], theirs[n] = w, r
		}
	}
	return ours, theirs, nil
}

// CloseAll closes those that are there.
func CloseAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
