// Package promauto is empty: tests of Coder's import it, and go mod tidy looks
// for it.
package promauto
