package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Sealer extends the Merkle tree and signs a checkpoint inside each commit.
type Sealer struct {
	path     string
	shared   bool       // see OpenShared
	rotating sync.Mutex // one rotation at a time

	mu    sync.Mutex // guards what follows
	key   ed25519.PrivateKey
	links []link // the rotations that led to the key, oldest first
	logs  map[string]*sealed
}

// sealed is what the sealer keeps of one tenant's log between commits. It
// holds as long as the stored checkpoint is the one it belongs to.
type sealed struct {
	checkpoint []byte
	edge       frontier
	signer     note.Signer
	verifier   string
	announced  bool // the log names the key as its newest
}

// Verifier is the C2SP verifier key of a tenant's log ("name+hash+key"), with
// which another tool can check its checkpoints and proofs.
func (s *Sealer) Verifier(tenant string) string { return s.Trusted(tenant)[0] }

// Seal implements store.Options.Seal: it adds the tenant's new events to the
// tree and replaces the checkpoint, once per commit however many updates
// stand in it.
func (s *Sealer) Seal(tx store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := tx.Get(heads, checkpointKey)
	if err != nil {
		return fmt.Errorf("seal: read the checkpoint of %s: %w", tx.Tenant(), err)
	}
	count := uint64(tx.Counter(counter))
	log := s.logs[tx.Tenant()]
	if count == 0 && stored == nil {
		return nil
	}
	if log == nil || !bytes.Equal(log.checkpoint, stored) || log.checkpoint == nil {
		// First use, or a commit that was sealed and then failed.
		if log, err = s.load(tx, stored); err != nil {
			return fmt.Errorf("seal the audit log of %s: %w", tx.Tenant(), err)
		}
	}
	if count == log.edge.size {
		return nil
	}
	if log, err = s.extend(log, tx, count); err != nil {
		delete(s.logs, tx.Tenant())
		return fmt.Errorf("seal the audit log of %s: %w", tx.Tenant(), err)
	}
	s.logs[tx.Tenant()] = log
	return nil
}

// load reads the right edge from the store. An edge or signature that does
// not hold stops all change: signing on would make the damage look right.
func (s *Sealer) load(tx store.Tx, stored []byte) (*sealed, error) {
	origin := Origin(tx.Tenant())
	log := &sealed{}
	var err error
	if log.signer, log.verifier, err = signerOf(s.key, origin); err != nil {
		return nil, err
	}
	if stored == nil {
		return log, nil
	}
	named, err := readNamed(tx)
	if err != nil {
		return nil, err
	}
	head, err := ParseCheckpoint(stored)
	if err == nil || errors.Is(err, ErrUnsigned) { // signed by a key that might when it had that size
		head, err = ParseCheckpoint(stored, signersAt(tx.Tenant(), named, head.Size).valid...)
	}
	if err == nil && head.Origin != origin {
		err = fmt.Errorf("checkpoint is of %s", head.Origin)
	}
	if err == nil {
		log.edge, err = loadFrontier(tx, head.Size)
	}
	if err == nil && log.edge.root() != head.Root {
		err = errors.New("the tree does not match its signed checkpoint")
	}
	if err != nil {
		return nil, fmt.Errorf("%w (see audit verify; restore a backup to go on)", err)
	}
	log.checkpoint = bytes.Clone(stored)
	return log, nil
}

// extend returns the log grown to count events, with all that is stored for it.
func (s *Sealer) extend(l *sealed, tx store.Tx, count uint64) (*sealed, error) {
	if !l.announced {
		if err := s.announceByItself(tx); err != nil {
			return nil, err
		}
		count = uint64(tx.Counter(counter))
	}
	grown := &sealed{edge: l.edge.clone(), signer: l.signer, verifier: l.verifier, announced: true}
	first := tlog.StoredHashIndex(0, int64(l.edge.size))
	hashes := make([]tlog.Hash, 0, 2*(count-l.edge.size)+64)
	var buf []byte
	wrong := false
	err := tx.Scan(Events, key(l.edge.size+1), key(count+1), false, func(k, data []byte) (bool, error) {
		var leaf tlog.Hash
		leaf, buf = leafHash(buf, data)
		wrong = binary.BigEndian.Uint64(k) != grown.edge.size+1
		hashes = grown.edge.push(leaf, hashes)
		return !wrong, nil
	})
	if err != nil {
		return nil, err
	}
	if wrong || grown.edge.size != count {
		return nil, fmt.Errorf("event %d is missing", grown.edge.size+1)
	}
	if err := putHashes(tx, uint64(first), hashes); err != nil {
		return nil, err
	}
	head := headText(l.verifier[:strings.IndexByte(l.verifier, '+')], count, grown.edge.root())
	if grown.checkpoint, err = note.Sign(&note.Note{Text: head}, l.signer); err != nil {
		return nil, err
	}
	return grown, tx.Put(heads, bytes.Clone(checkpointKey), bytes.Clone(grown.checkpoint))
}

// announceByItself names the key in a log whose own changes did not.
func (s *Sealer) announceByItself(tx store.Tx) error {
	at, err := newestTime(tx)
	if err != nil {
		return err
	}
	text, err := at.MarshalText()
	if err != nil {
		return err
	}
	mark := stamp{tenant: tx.Tenant(), prefix: idPrefix(tx.Tenant()), by: core.Self(tx.Tenant(), "audit"), at: text}
	_, err = s.names(tx, func(e *Entry) (uint64, error) {
		seq := uint64(tx.Add(counter, 1))
		event, err := mark.begin(tx, seq, e)
		if err != nil {
			return 0, err
		}
		return seq, end(tx, event)
	})
	return err
}

// announce is names for who does not hold s.mu.
func (s *Sealer) announce(tx store.Tx, record func(*Entry) (uint64, error)) ([]namedKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names(tx, record)
}

// names records each key that is new to this log as an event of it, and
// returns all that the log names then.
func (s *Sealer) names(tx store.Tx, record func(*Entry) (uint64, error)) ([]namedKey, error) {
	named, err := readNamed(tx)
	if err != nil {
		return nil, err
	}
	fresh, err := s.next(tx.Tenant(), named)
	if err != nil {
		return nil, err
	}
	for _, k := range fresh {
		if k.seq, err = record(k.entry("")); err != nil {
			return nil, err
		}
		named = append(named, k)
	}
	if len(fresh) == 0 {
		return named, nil
	}
	return named, tx.Put(heads, bytes.Clone(verifiersKey), namedText(named))
}

// entry is the event that names a key; endorsed is one of another log that it follows, or "".
func (k *namedKey) entry(endorsed string) *Entry {
	detail := keyDetail{Verifier: k.verifier, By: k.by, Signature: k.signature, Accepted: k.accepted, Endorsed: endorsed}
	if k.way == keyEvent {
		detail.By, detail.Replaces = "", k.by
	}
	sum := sha256.Sum256([]byte(k.verifier)) // the trace: replays must not differ
	return &Entry{Type: k.way, Trace: hex.EncodeToString(sum[:16]), Subject: "audit_key", ID: keyID(k.verifier), Detail: detail}
}

// keyDetail is what an event says of a key that it names.
type keyDetail struct {
	Verifier  string `json:"verifier"`
	Replaces  string `json:"replaces,omitzero"`
	By        string `json:"by,omitzero"`        // the key that trusts or retires it
	Signature string `json:"signature,omitzero"` // by the replaced key, or by By; without it the key came in another way than by a rotation
	Accepted  string `json:"accepted,omitzero"`  // what a trusted key signed to be one of this log
	Endorsed  string `json:"endorsed,omitzero"`  // id of the event in another tenant's log by which it is trusted
}
