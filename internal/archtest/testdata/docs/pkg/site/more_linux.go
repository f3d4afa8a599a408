// Package site has a doc for each system.
package site
