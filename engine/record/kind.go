// Package record is the one way to keep a noun. A Kind declares it once: what
// its records are called, what identifies one, what the audit log says of it,
// by what else it is found and how many there may be. From the declaration
// come loading, listing, saving, removing, following and reconciling.
//
// A save is one transaction: the record, its indexes, its count, an audit event
// that carries the digest of the whole stored record, and the change that
// watchers get after the commit. A record that can't be read is an error that
// names it, and hides no other.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Kind declares a noun. It is not changed once it is used. P is the pointer to a
// record: the compiler makes one body for all pointers (as long as the constraint
// is any), where one for each type of record took megabytes and half of a build.
type Kind[P any] struct {
	Noun    string       // in errors: "operator"
	Subject string       // in the audit log and in changes; "" is the Noun
	Bucket  store.Bucket // key → record; its name is also that of the count
	// ID identifies a record in its tenant.
	ID func(P) string
	// Key is where the record of an id is kept, nil when no record can have that
	// id. Without it the id is the key.
	Key func(tenant, id string) Key
	// Name is the id that a key stands for, for errors about records that can't
	// be decoded. Without it they are named by the key.
	Name func(tenant string, key []byte) string
	// Number reads the number in an id, in place of Key, where the keys are the
	// numbers from 1 on, of which only the oldest leave: see Next, Page, Leaving.
	// Its error is that of who needs a record by such an id.
	Number func(tenant, id string) (uint64, error)
	// Place is where a record is kept, where that does not follow from its id:
	// such records are read by At.
	Place func(P) Key
	// Head points to the members that saving fills in, where they are not those that
	// are called tenant_id, created_at, updated_at and audit_seq in JSON.
	Head func(P) Head
	// Stored is what the store keeps, where that is not the record's own JSON;
	// it must decode into a record. nil is the record.
	Stored func(P) any
	// Encode and Decode are the codec where JSON of the record is not it. Encode
	// appends to b; Decode keeps no reference to data.
	Encode func(b []byte, v P) ([]byte, error)
	Decode func(data []byte) (P, error)
	// Brief is Decode without what is large, for who looks at many; see Glance.
	Brief func(data []byte) (P, error)
	// Whole kinds hold no secret: events say the whole record but its head.
	Whole bool
	// Says are the members that events tell of where that is not all: their names in
	// JSON, with spaces between. None is secret, or may have to be erased.
	Says string
	// State is what events say where no members do, a JSON object. Of a kind without
	// any of these they say nothing; the digests of its rows prove it all the same.
	State func(P) any
	// Personal takes out of a record what is a subject's; see Eraser.
	Personal func(e *Erasure, v P)
	// Ended is when a record ended, zero while it must stay, and Leaves removes what
	// lies beside one that leaves by Prune.
	Ended  func(tx *audit.Tx, v P) (time.Time, error)
	Leaves func(tx *audit.Tx, v P) error
	// Fits says whether a filter asks for a record, whatever the times if the kind is
	// numbered and has when a record was made. Statuses are what the filter's may be,
	// if they are few.
	Fits     func(v P, f core.Filter) bool
	Statuses []string
	// Limit is the most a tenant may have; 0 is any number.
	Limit   int
	Indexes []Index[P]
	// Quiet records come and go with others, whose changes watchers are told.
	Quiet bool

	// Ledger is what Page and the methods that take a caller or a tenant work on.
	Ledger *audit.Ledger
	// Follow learns of every record: of those that are there when Read is
	// called, and of each that a commit saved, or removed (nil), in commit order
	// on the store's goroutine. It must be quick and must not change the record.
	Follow func(tenant, id string, v P)
	// Unread learns in Read of each record that can't be decoded, by its name,
	// so that what it may have held back stays held back; nil ignores it.
	Unread func(tenant, name string)

	members members
}

// Head are the members of a record that saving fills in; those that it has not
// are nil.
type Head struct {
	Tenant           *string
	Created, Updated *time.Time
	Seq              *uint64 // of the newest audit event about the record
}

// Index finds records by something else than their id, by Keys or by a Word.
type Index[P any] struct {
	Bucket store.Bucket // "" finds nothing, and only counts
	// Keys are the keys under which a record is found, none or more; the value
	// is the record's id.
	Keys func(P) []Key
	// Word is what a record is found by, in the order of the records' keys: the
	// key is the word and theirs, the value Value, nil for nothing. "" is none.
	Word  func(P) string
	Value func(P) []byte
	// Count begins the names of the counters that say how many records have each
	// word: COUNT.WORD. "" counts none.
	Count string
	// By is the field of a filter that is a word, of an index that counts.
	By func(*core.Filter) *string
}

// Called is the Noun.
func (k *Kind[P]) Called() string { return k.Noun }

// Hold has the ledger hold how many records there are, how many were ever made,
// and other counters.
func (k *Kind[P]) Hold(more ...string) {
	k.Ledger.Hold("", append(more, string(k.Bucket), seqOf(k.Bucket))...)
}

// subject is what the audit log and watchers call the kind.
func (k *Kind[P]) subject() string {
	if k.Subject != "" {
		return k.Subject
	}
	return k.Noun
}

// Counters are a tenant's: of a transaction, or those that a ledger holds.
type Counters interface{ Counter(name string) int64 }

// Count is how many records the tenant has.
func (k *Kind[P]) Count(c Counters) int64 { return c.Counter(string(k.Bucket)) }

// Counted is how many records have a word, by an index that counts.
func (k *Kind[P]) Counted(c Counters, count, word string) int64 {
	return c.Counter(count + "." + word)
}

// encode is what is stored of a record; b may be used for it.
func (k *Kind[P]) encode(b []byte, v P) (data []byte, err error) {
	switch {
	case k.Encode != nil:
		data, err = k.Encode(b, v)
	case k.Stored != nil:
		data, err = core.Encode(k.Stored(v))
	default:
		data, err = core.Encode(v)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k.Noun, k.ID(v), err)
	}
	return data, nil
}

func (k *Kind[P]) decode(tenant string, key, data []byte) (P, error) {
	return k.decodeBy(k.Decode, tenant, key, data)
}

func (k *Kind[P]) decodeBy(codec func([]byte) (P, error), tenant string, key, data []byte) (v P, err error) {
	if codec != nil {
		v, err = codec(data)
	} else {
		v = fresh[P]()
		err = core.DecodeStored(data, v)
	}
	if err == nil && !k.is(tenant, v, key) {
		err = fmt.Errorf("it says that it is %q", k.ID(v))
	}
	if err != nil {
		var none P
		return none, k.damaged(tenant, key, err)
	}
	return v, nil
}

// fresh is a new record.
func fresh[P any]() P { return reflect.New(reflect.TypeFor[P]().Elem()).Interface().(P) }

// assign makes a record what another is.
func assign[P any](to, from P) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }

// isNil reports whether there is no record.
func isNil[P any](v P) bool {
	var none P
	return any(v) == any(none)
}

func (k *Kind[P]) damaged(tenant string, key []byte, err error) error {
	name := string(key)
	switch {
	case k.Name != nil:
		name = k.Name(tenant, key)
	case k.Number != nil:
		name = fmt.Sprint("number ", LastSeq(key))
	}
	return &core.Damaged{Noun: k.Noun, Key: name, Err: err}
}

// key is where the record of an id is, nil where none can be.
func (k *Kind[P]) key(tenant, id string) Key {
	switch {
	case k.Number != nil:
		if n, err := k.Number(tenant, id); err == nil {
			return Seq(n)
		}
		return nil
	case k.Key != nil:
		return k.Key(tenant, id)
	}
	return Key(id)
}

// place is where a record is kept.
func (k *Kind[P]) place(tenant string, v P) Key {
	if k.Place != nil {
		return k.Place(v)
	}
	return k.key(tenant, k.ID(v))
}

// is says whether a record is one that is kept at a key.
func (k *Kind[P]) is(tenant string, v P, key []byte) bool {
	if k.Place == nil && k.Number == nil && k.Key == nil {
		return k.ID(v) == string(key)
	}
	return bytes.Equal(k.place(tenant, v), key)
}

func (k *Kind[P]) head(v P) (h Head) {
	switch {
	case isNil(v):
		return h
	case k.Head != nil:
		return k.Head(v)
	}
	return k.members.head(v)
}

// state is what an event says of a record: what the kind wants said.
func (k *Kind[P]) state(v P) any {
	switch {
	case k.Whole:
		return k.headless(v)
	case k.Says != "":
		return k.members.said(v, k.Says)
	case k.State != nil:
		return k.State(v)
	}
	return nil
}

// told says whether events say anything of the kind's records.
func (k *Kind[P]) told() bool { return k.Whole || k.Says != "" || k.State != nil }

// headless is a record without its head.
func (k *Kind[P]) headless(v P) P {
	c := fresh[P]()
	assign(c, v)
	h := k.head(c)
	fill(h.Tenant, "")
	fill(h.Created, time.Time{})
	fill(h.Updated, time.Time{})
	fill(h.Seq, 0)
	return c
}

// Load reads one record; nil when there is none.
func (k *Kind[P]) Load(tx store.Tx, id string) (P, error) {
	v, err := k.At(tx, k.key(tx.Tenant(), id))
	if !isNil(v) && k.ID(v) != id && k.Number != nil { // of an id, the number is only a part
		var none P
		return none, nil
	}
	return v, err
}

// Need reads one record; core.NotFound when there is none.
func (k *Kind[P]) Need(tx store.Tx, id string) (v P, err error) {
	if k.Number != nil {
		if _, err := k.Number(tx.Tenant(), id); err != nil {
			return v, err
		}
	}
	v, err = k.Load(tx, id)
	if err == nil && isNil(v) {
		err = core.Missing(k.Noun, id)
	}
	return v, err
}

// At reads the record at a key; nil when there is none.
func (k *Kind[P]) At(tx store.Tx, key Key) (P, error) { return k.at(tx, key, k.Decode) }

// Glance is At by Brief.
func (k *Kind[P]) Glance(tx store.Tx, key Key) (P, error) {
	if k.Brief != nil {
		return k.at(tx, key, k.Brief)
	}
	return k.at(tx, key, k.Decode)
}

func (k *Kind[P]) at(tx store.Tx, key Key, codec func([]byte) (P, error)) (v P, err error) {
	if len(key) == 0 || len(key) > store.MaxKey {
		return v, nil
	}
	data, err := tx.Get(k.Bucket, key)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return v, k.damaged(tx.Tenant(), key, err)
	case err != nil:
		return v, fmt.Errorf("read %s %q: %w", k.Noun, key, err)
	}
	if data == nil {
		return v, nil
	}
	return k.decodeBy(codec, tx.Tenant(), key, data)
}

// maxNamed bounds the damaged records that one error names.
const maxNamed = 10

// Each visits the records in the order of their keys, until visit fails. Those
// that can't be decoded are passed over and named in the error, once all others
// have been visited.
func (k *Kind[P]) Each(tx store.Tx, visit func(P) error) error {
	return k.each(tx, visit, func(error) {})
}

// each is Each; unread hears of every record that can't be decoded.
func (k *Kind[P]) each(tx store.Tx, visit func(P) error, unread func(error)) error {
	return k.scan(tx, k.Bucket, nil, visit, unread)
}

// Under is Each of the records whose keys begin so.
func (k *Kind[P]) Under(tx store.Tx, under Key, visit func(P) error) error {
	return k.scan(tx, k.Bucket, under, visit, func(error) {})
}

// Along is Each of the records that an index with that bucket finds by a word.
func (k *Kind[P]) Along(tx store.Tx, index store.Bucket, word string, visit func(P) error) error {
	return k.scan(tx, index, Text(word), visit, func(error) {})
}

// ErrStop ends a visit of records without being its error.
var ErrStop = errors.New("enough")

// scan visits the records that a bucket, or an index by words, has under a key.
func (k *Kind[P]) scan(tx store.Tx, bucket store.Bucket, under Key, visit func(P) error, unread func(error)) error {
	return scanReadable(tx, bucket, under, unread, func(key, data []byte) (bad, err error) {
		var v P
		if bucket == k.Bucket {
			v, bad = k.decode(tx.Tenant(), key, data)
		} else {
			v, bad = k.At(tx, key[len(under):])
		}
		if isNil(v) || bad != nil {
			return bad, nil
		}
		return nil, visit(v)
	})
}

// scanReadable visits what is under a key, until visit fails. visit says apart what
// keeps a record from being read: a damaged one is named in the error, and passed
// over.
func scanReadable(tx store.Tx, bucket store.Bucket, under Key, unread func(error), visit func(key, data []byte) (bad, err error)) error {
	var damaged []error
	n := 0
	from, to := under.Under()
	err := tx.Scan(bucket, from, to, false, func(key, data []byte) (bool, error) {
		bad, err := visit(key, data)
		if len(core.DamagedIn(bad)) > 0 {
			unread(bad)
			if n++; n <= maxNamed {
				damaged = append(damaged, bad)
			}
			return true, nil
		}
		if err == nil {
			err = bad
		}
		return err == nil, err
	})
	if errors.Is(err, ErrStop) {
		err = nil
	}
	if n > maxNamed {
		damaged = append(damaged, fmt.Errorf("%d more can't be read", n-maxNamed))
	}
	return errors.Join(append(damaged, err)...)
}
