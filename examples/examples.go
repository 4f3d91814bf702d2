// Package examples holds the runnable examples that the program carries with
// it. Extract writes one out, because its agents are files to execute.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed quickstart
var files embed.FS

// Extract writes the example of this name into dir/name and returns that
// directory. Files are private to the user; scripts (*.sh) are executable.
func Extract(name, dir string) (string, error) {
	to := filepath.Join(dir, name)
	err := fs.WalkDir(files, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(path))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		data, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o700
		}
		return os.WriteFile(target, data, mode)
	})
	if err != nil {
		return "", fmt.Errorf("write example %s into %s: %w", name, dir, err)
	}
	return to, nil
}
