// Package yaml stands in for the one that Coder reads variables of templates
// with. What has no body does not link: no client calls it.
package yaml

func Unmarshal([]byte, any) error
