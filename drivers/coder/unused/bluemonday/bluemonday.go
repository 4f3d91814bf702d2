// Package bluemonday stands in for the one that Coder's server cleans HTML
// with. What has no body does not link: no client calls it.
package bluemonday

type Policy struct{}

func StrictPolicy() *Policy { return nil }

func (*Policy) Sanitize(string) string
