// Package gofakeit stands in for the one that Coder makes names up with. What
// has no body does not link: no client calls it.
package gofakeit

type Faker struct{}

func New(uint64) *Faker

func (*Faker) AdjectiveDescriptive() string

func (*Faker) LastName() string
