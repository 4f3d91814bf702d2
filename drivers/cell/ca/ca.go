// Package ca is the certificate authority of one cell, which lets the engine's
// proxy read what the cell says within TLS. Its keys are in memory alone and
// never in the cell; only the cell trusts it, and it ends with the cell.
package ca

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	life     = 90 * 24 * time.Hour // of an authority: as long as a cell may run
	leafLife = 24 * time.Hour
	skew     = time.Hour // that clocks may be apart
	maxLeafs = 256       // that are kept; more are made again
)

// Authority signs certificates for hosts. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // of all its certificates

	mu    sync.Mutex
	leafs map[string]*tls.Certificate // by host
}

// New makes an authority.
func New() (*Authority, error) {
	a := &Authority{leafs: map[string]*tls.Certificate{}}
	var err error
	for _, key := range []**ecdsa.PrivateKey{&a.key, &a.leaf} {
		if *key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("make the key of a cell's authority: %w", err)
		}
	}
	want, err := template("swarmdeck: authority of one cell", life)
	if err != nil {
		return nil, err
	}
	want.IsCA, want.BasicConstraintsValid, want.MaxPathLenZero = true, true, true
	want.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, want, want, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("make a cell's authority: %w", err)
	}
	return a, nil
}

func template(name string, last time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("number a certificate: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(last)}, nil
}

// Leaf is a certificate for a host: a name or an address.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leafs[host]; c != nil && time.Until(c.Leaf.NotAfter) > leafLife/2 {
		return c, nil
	}
	want, err := template("swarmdeck", leafLife)
	if err != nil {
		return nil, err
	}
	want.KeyUsage, want.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if addr := net.ParseIP(host); addr != nil {
		want.IPAddresses = []net.IP{addr}
	} else {
		want.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, want, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	if len(a.leafs) >= maxLeafs {
		clear(a.leafs)
	}
	a.leafs[host] = c
	return c, nil
}

// Certificate is the authority's own, in PEM.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Bundle is what the machine trusts and this authority, in PEM. What the
// machine trusts is missing where it can't be found.
func (a *Authority) Bundle() []byte {
	roots, _ := os.ReadFile(cmp.Or(os.Getenv("SSL_CERT_FILE"), Store()))
	if n := len(roots); n > 0 && roots[n-1] != '\n' {
		roots = append(roots, '\n')
	}
	return append(roots, a.Certificate()...)
}

// Store is the file in which this system keeps what it trusts, without symbolic
// links; "" where there is none of the usual ones.
func Store() string {
	for _, path := range []string{ // as crypto/x509 looks for it
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return ""
}
