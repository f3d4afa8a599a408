// Package install knows how a site is started on this machine, by hand or as a service of systemd,
// and keeps a record of what was made for it, so that leaving takes back exactly that. It asks the
// user's service manager through systemctl, in bounded time. It decides nothing about the site, and
// removes nothing whose name it does not know.
package install
