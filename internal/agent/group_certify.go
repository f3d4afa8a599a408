package agent

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// certify writes the next certificate into the table: of the voters, and of those that a change
// is to end with, which begins when the group has agreed on that. Without a target it ends one.
func (g *group) certify(voters, target []standby.MemberID) {
	next := protocol.Certificate{Owner: g.owner, Epoch: g.assembly.certificate.Epoch + 1}
	if g.member.Row(broker.FactGroup, keyRecovered) != nil {
		next.Epoch += recoveredBy
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(voters, target)))) {
		site := g.siteOf(id)
		for candidate, accepted := range g.forming.answers {
			if accepted == id {
				site = candidate
			}
		}
		if site != "" { // else it was one of an earlier log
			next.Members = append(next.Members, protocol.CertMember{ID: uint64(id), Site: site})
		}
	}
	next, err := next.Sign(g.duty.sign)
	if err != nil {
		g.log.Error("the members of the group cannot be certified", "error", err)
		return
	}
	end := step.Fact{Kind: broker.FactGroup, Key: keyTarget}
	if target != nil {
		end = groupFact(keyTarget, target)
	}
	recovered := step.Fact{Kind: broker.FactGroup, Key: keyRecovered}
	g.persist(g.certified, groupFact(keyCertificate, next.Encode()), end, recovered)
}

// certified goes on when the group has agreed on a certificate.
func (g *group) certified() {
	g.noteMembers()
	g.tellCertificate()
	if g.target() == nil {
		clear(g.forming.answers)
		clear(g.forming.asked)
		clear(g.forming.gone)
		g.log.Info("the members of a group have changed", "owner", string(g.owner),
			"members", g.assembly.certificate.Sites(), "epoch", g.assembly.certificate.Epoch)
	}
	g.form()
}

// tellCertificate tells the certificate to all that it names, and to those that it has left out:
// a site that joins answers nobody else, and one that is out lets go of all.
func (g *group) tellCertificate() {
	g.tellNews(slices.Concat(g.assembly.certificate.Sites(), g.assembly.left)...)
}

func (g *group) tellNews(to ...grid.SiteID) {
	if g.assembly.encoded == nil {
		return
	}
	news := g.news()
	for _, site := range to {
		if site != g.a.mesh.Self() {
			g.a.sendQuietly(site, news)
		}
	}
}

// news says who acts, as far as is known here.
func (g *group) news() protocol.StandbyNews {
	leader, term := g.member.Leader()
	news := protocol.StandbyNews{
		Certificate: g.assembly.encoded, Term: term, Acting: g.siteOf(leader),
	}
	if leader == 0 || term == 0 {
		news.Acting = ""
	}
	return news
}
