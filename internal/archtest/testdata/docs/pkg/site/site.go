// Package site is fine.
package site // want "second package doc"
