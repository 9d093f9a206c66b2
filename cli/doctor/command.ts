import { Argument } from 'commander';
import { DPU_LEASE_NAMESPACE } from '../../model/names.ts';
import { Subcommand, wholeNumber } from '../support/command.ts';
import { AREAS } from './checks/finding.ts';

/** Two and a half of the usual renewal intervals, so that it includes at least two renewals of every DPU. */
const USUAL_WATCH_SECONDS = 25;

const EXAMPLES = `
Areas: ${AREAS.join(', ')}.

Examples:
  plumbline doctor preflight           # before an installation: what is missing, and what you may not create
  plumbline doctor                     # everything else; takes ${USUAL_WATCH_SECONDS} s where there are DPUs
  plumbline doctor webhook extender    # only these
  plumbline doctor dpu --watch 60      # the Leases of DPUs, and who writes them
  plumbline doctor -o wide             # every object of each finding by name
  plumbline doctor -o json

Changes nothing: it reads, and asks the API server for a dry run of a new launcher. Exit status: 0 nothing wrong, 1 something wrong, 2 wrong flags, 3 the cluster cannot be queried.`;

export const createCommand = () =>
  new Subcommand(
    'doctor',
    'Find what fails silently, its impact and its fix: missing parts, kubelet ' +
      'options, certificates, webhooks, an extender that no scheduler calls, networks, Leases and their writers, pods that ' +
      'Plumbline never saw.',
    EXAMPLES,
  )
    .addArgument(new Argument('[areas...]', 'what to check; default: all except preflight').choices(AREAS))
    .option('--dpu-lease-namespace <name>', 'namespace of the Leases of DPUs', DPU_LEASE_NAMESPACE)
    .option(
      '--watch <seconds>',
      'how long to watch the Leases of DPUs',
      wholeNumber(0, 3600, '0 to 3600 whole seconds'),
      USUAL_WATCH_SECONDS,
    )
    .withCluster()
    .withOutput('json', 'yaml', 'wide', 'name')
    .runs(() => import('./run.ts'));
