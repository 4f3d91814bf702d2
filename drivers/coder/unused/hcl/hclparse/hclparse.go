// Package hclparse stands in for the one that Coder reads the variables of
// templates with. What has no body does not link: no client calls it.
package hclparse

import "github.com/hashicorp/hcl/v2"

type Parser struct{}

func NewParser() *Parser

func (*Parser) ParseHCL(src []byte, filename string) (*hcl.File, hcl.Diagnostics)
