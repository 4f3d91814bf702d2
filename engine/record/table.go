package record

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/store"
)

// Table is what can be done with the records of a Kind, which is the only one.
// Services hold it in place of the Kind: whoever sees one in a service's fields
// compiles all methods of it anew, and with 36 kinds that was more than half of a
// build. The methods are described at those of Kind.
type Table[T any] interface {
	// Called is the kind's Noun.
	Called() string

	Load(tx store.Tx, id string) (*T, error)
	Need(tx store.Tx, id string) (*T, error)
	At(tx store.Tx, key Key) (*T, error)
	Glance(tx store.Tx, key Key) (*T, error)
	Each(tx store.Tx, visit func(*T) error) error
	Under(tx store.Tx, under Key, visit func(*T) error) error
	Along(tx store.Tx, index store.Bucket, word string, visit func(*T) error) error
	Page(ctx context.Context, tx store.Tx, q Query[*T]) (core.Page[*T], error)
	Find(ctx context.Context, tenant string, q Query[*T]) (core.Page[*T], error)
	Span(tx store.Tx, f core.Filter) (lo, hi uint64, err error)

	Next(tx *audit.Tx) uint64
	Put(tx *audit.Tx, e Event, v *T, same func(a, b *T) bool) (action string, err error)
	Same(old, v *T) bool
	Save(tx *audit.Tx, e Event, old, v *T) error
	Keep(tx *audit.Tx, e Event, v *T) error
	Write(tx *audit.Tx, old, v *T) error
	Tell(tx *audit.Tx, e Event, v *T) error
	Remove(tx *audit.Tx, e Event, old *T) error
	Leave(tx *audit.Tx, r *Removal, old *T) error

	Get(ctx context.Context, tenant, id string) (*T, error)
	List(ctx context.Context, tenant string) ([]*T, error)
	Map(ctx context.Context, tenant string) (map[string]*T, error)
	Delete(ctx context.Context, by core.Caller, event, id string) (*T, error)
	ByOperator(ctx context.Context, by core.Caller, id string) error
	Eraser(called string) Eraser
	Prune(ctx context.Context, by core.Caller, limit Limit, called string) (next []byte, err error)

	Read(ctx context.Context, tenant string) error
	ReadAll(ctx context.Context, book *health.Troubles, tenants func(context.Context) ([]string, error)) error
	Auditable() audit.Auditable

	Hold(more ...string)
	Count(c Counters) int64
	Counted(c Counters, count, word string) int64
	Newest(c Counters) uint64
}

// Value is a record that is handed on by value; the zero one for nil.
func Value[T any](v *T, err error) (out T, _ error) {
	if v != nil {
		out = *v
	}
	return out, err
}

// Values are records that are handed on by value.
func Values[T any](list []*T, err error) ([]T, error) {
	if list == nil {
		return nil, err
	}
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = *v
	}
	return out, err
}

// Paged is a page whose records are handed on by value.
func Paged[T any](page core.Page[*T], err error) (core.Page[T], error) {
	items, err := Values(page.Items, err)
	return core.Page[T]{Items: items, Info: page.Info}, err
}
