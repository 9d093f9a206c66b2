import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAssignments } from '../../../node-agent/assignments/assignments.ts';
import { createAffinityEvents } from '../../../node-agent/ovs-affinity/affinity-events.ts';
import { createOvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createLogger } from '../../../runtime/log.ts';
import { machine, ovsParts, recordingEvents } from './parts.ts';

/**
 * The two duties that keep Open vSwitch off owned CPUs, in a process of their own that can be killed, traced and
 * measured: following the kubelet's directory <directory>/kubelet, with the run directory, enabler file and saved masks
 * below <directory>. Usage: program.ts <directory> [<seconds between looks>]. Logs to standard output; SIGTERM ends it
 * in order.
 */
const [directory = '', checkInterval = '5'] = process.argv.slice(2);
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
const log = createLogger('node-agent', 'info');
const assignments = createAssignments({
  kubeletDir: join(directory, 'kubelet'),
  online: machine,
  log,
  onFailure: () => {},
});
const { recorder } = recordingEvents();
const events = createAffinityEvents({ recorder, nodeName: 'n', now: () => performance.now() / 1000 });
const ovs = createOvsAffinity(
  ovsParts(directory, {
    assignments,
    events,
    log,
    checkInterval: Number(checkInterval),
    isolated: () => CpuSet.EMPTY,
  }),
);
// For measurements from outside: when the callback that the event came in has ended, on the machine's clock.
assignments.subscribe(() => {
  queueMicrotask(() => process.send?.({ done: process.hrtime.bigint().toString() }));
});
const running = Promise.all([assignments.run(stop.signal), ovs.run(stop.signal)]);
log.info('program started');
await running;
process.exit(0);
