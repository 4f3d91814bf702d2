// Package hcl stands in for the one that Coder reads the variables of templates
// with. What has no body does not link: no client calls it.
package hcl

import "github.com/zclconf/go-cty/cty"

type (
	Attribute struct {
		Name string
		Expr Expression
	}
	Attributes map[string]*Attribute
	Body       interface {
		JustAttributes() (Attributes, Diagnostics)
	}
	Diagnostics []*Diagnostic
	Diagnostic  struct{}
	EvalContext struct{}
	Expression  interface {
		Value(*EvalContext) (cty.Value, Diagnostics)
	}
	File struct{ Body Body }
)

func (Diagnostics) Error() string

func (Diagnostics) HasErrors() bool
