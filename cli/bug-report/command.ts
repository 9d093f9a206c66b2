import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
The archive has versions, what doctor finds, the reports of the nodes, and the Events, pods and logs of plumbline-system. It has
no Secrets, environment variables and specs of VMs; names of VMs, pods and namespaces of tenants are replaced, each by the same
word everywhere. Names of nodes and networks stay. The list of its files is printed before it is written.

Examples:
  plumbline bug-report                       # plumbline-bug-report-TIME.tar.gz in this folder
  plumbline bug-report --dry-run             # only the list
  plumbline bug-report -f report.tar.gz

Exit status: 0 written, 2 the file exists or cannot be written, 3 the cluster cannot be queried.`;

export const createCommand = () =>
  new Subcommand(
    'bug-report',
    'Write one archive for a bug report: versions, findings, reports, Events and logs, without secrets and data of tenants.',
    EXAMPLES,
  )
    .option('-f, --file <path>', 'the archive; an existing file is never overwritten')
    .option('--dry-run', 'print the list of files and write nothing')
    .withCluster()
    .runs(() => import('./run.ts'));
