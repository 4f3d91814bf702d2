// Package cty stands in for the one that Coder reads the variables of templates
// with. What has no body does not link: no client calls it.
package cty

import "math/big"

type (
	ElementCallback func(key, val Value) (stop bool)
	Type            struct{}
	Value           struct{}
)

var Number, String Type

func (Type) Equals(Type) bool

func (Type) GoString() string

func (Type) IsTupleType() bool

func (Value) AsBigFloat() *big.Float

func (Value) AsString() string

func (Value) ForEachElement(ElementCallback) bool

func (Value) GoString() string

func (Value) Type() Type
