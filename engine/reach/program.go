package reach

import (
	"os"
	"path/filepath"
	"strings"
)

// Program finds a program in the directories of a list as PATH is; "" for none. A name
// with a slash is a path, and in no list.
func Program(name, path string) string {
	if name == "" || strings.Contains(name, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, name)
		if info, err := os.Stat(at); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}
