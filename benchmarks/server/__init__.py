"""The server extension beside jupyter-scheduler: `make bench-server`.

What is fair here, and why:

- Two JupyterLabs of the same version, for that is where both have their users, each with the one
  extension only and a home, folders and store of its own. (`--program jupyter_server` leaves out
  JupyterLab, which the peer's jobs pay for: each is a process that imports its server's program.)
  The peer's packages stand in an environment of their own (`scripts/install peer`), and what both
  environments hold is pinned to the same versions: the same kernel runs the same notebook. Both
  extensions keep their default settings.
- Both get what their own button sends, over a kept connection with a token.
- Every job that is posted is a real one, and it runs to its end: nothing is cancelled, for the
  peer's cancel leaves kernels behind. The next request comes when nothing of the last job is left
  (no process but the server, and what stays by design: our dispatcher, the peer's resource
  tracker). So no request is measured against jobs of an earlier one; what many at once do to each
  other is `flood`. They take turns, a few jobs each; the first of ours in a turn meets no
  dispatcher any more, and pays for starting it.
- The peer's clock stops at the first sign of COMPLETED in its database, which its users see by
  asking; its files are then in a staging area, and it takes one more request to have them in the
  workspace (shown as a row of its own, not in the ratio). Ours stops when the executed notebook
  stands in the workspace. Then everybody's result is opened and checked: valid, executed, right.
- The lists hold copies of a job that really ran: ours written by the exchange's own functions, the
  peer's by its own ORM. Its page is the one that it sends by default, of 1000 rows.
- Memory is the sum of PSS over all processes of a server, server included: shared pages count once.
  A look at it costs no more than a tenth of a processor, on both sides.
- `kernels` is what the same number of kernels cost in processor time if they do nothing but start,
  run the notebook's cells and leave, one for each processor at a time; not what their client costs.
"""
