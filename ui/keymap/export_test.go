package keymap

// Default is the file that is built in.
func Default() string { return string(defaults) }
