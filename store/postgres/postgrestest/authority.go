package postgrestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/expect"
)

// Authority signs certificates of servers.
type Authority struct {
	File string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	cert, key := a.sign(t, a.cert)
	a.key = key
	expect.No(t, os.WriteFile(a.File, cert, 0o600))
	return a
}

// Certify makes the certificate of a server at an address, and its key, as PEM.
func (a *Authority) Certify(t testing.TB, address string) (cert, key []byte) {
	t.Helper()
	cert, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: address}, NotAfter: a.cert.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	raw := expect.Of(x509.MarshalPKCS8PrivateKey(private))(t)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// sign signs a certificate, which without a key of ours is our own.
func (a *Authority) sign(t testing.TB, cert *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key := expect.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	by := a.key
	if by == nil {
		by = key
	}
	raw := expect.Of(x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, by))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key
}
