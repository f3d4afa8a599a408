package main

import "github.com/spf13/cobra"

func (a *app) planCommand() *cobra.Command {
	svg := ""
	cmd := &cobra.Command{
		Use: "plan FILE", Short: "Announce a job and show the offers; dispatch nothing",
		Long: `Announce a job file to the mesh, show how every site answers, and withdraw it.
Nothing runs. START is when the program would begin at the earliest and FINISH when
it is expected to end, on this machine's clock. Of a job with a fixed start or a
deadline, STAYS gives the probability that the site stays until then, and a site that cannot promise
it says the earliest time that it could. RISK gives the
probability that the site leaves before the job ends. The code is 4 when every site says that it
never fits.`,
		Args: exactly(1, "one job file"),
		Example: "  submit plan pi.yaml\n  submit plan pi.yaml -o wide\n  submit plan pi.yaml --svg " +
			"map.svg",
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, _, err := a.loadFile(args[0])
			if err != nil {
				return err
			}
			if err = a.checkDomain(cmd.Context()); err != nil {
				return err
			}
			job, err := a.upload(cmd.Context(), plan)
			if err != nil {
				return err
			}
			offers, err := a.client.Plan(cmd.Context(), job)
			if err != nil {
				return err
			}
			if err := a.showOffers(offers); err != nil {
				return err
			}
			if err := writeMap(svg, offers); err != nil {
				return err
			}
			if offers.Never {
				return &codeError{code: exitNever}
			}
			return nil
		},
	}
	a.outsideFlag(cmd)
	cmd.Flags().StringVar(&svg, "svg", "", "draw the virtual map into this file")
	return cmd
}
