// Package oidc stands in for the one that people sign in to Coder's server with.
package oidc

const ScopeOpenID = "openid"
