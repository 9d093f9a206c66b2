import { join } from 'node:path';
import { createAffinity } from '../../../native/affinity.ts';
import { Assignments } from '../../../node-agent/assignments/assignments.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { AffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { createLogger } from '../../../runtime/log.ts';
import { recordingEvents } from '../support.ts';
import { machine, ovsParts } from './stage.ts';

/**
 * The two duties that keep Open vSwitch off owned CPUs, in their own process that can be killed and measured.
 * It follows the kubelet's directory <directory>/kubelet; run directory, enabler file and saved masks are below
 * <directory>. Usage: program-stage.ts <directory> [<seconds between checks>]. Logs to standard output;
 * SIGTERM stops it cleanly. It reports to a parent with a channel that it is ready, and after each change of the owners when
 * the last thread was moved (bench/node-agent/ovs-stage.ts).
 */
const [directory = '', checkInterval = '12'] = process.argv.slice(2);
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
const log = createLogger('node-agent', 'info');
const assignments = new Assignments({
  kubeletDir: join(directory, 'kubelet'),
  cdiDir: join(directory, 'cdi'),
  online: machine,
  log,
  onFailure: () => {},
});
const affinity = createAffinity();
/** The machine's monotonic nanoseconds. */
let movedAt = 0n;
const timed: typeof affinity = {
  get: affinity.get,
  set(tid, words) {
    affinity.set(tid, words);
    movedAt = process.hrtime.bigint();
  },
};
const { recorder } = recordingEvents();
const events = new AffinityEvents({ recorder, nodeName: 'n', nowSeconds: () => performance.now() / 1000 });
const changes = { assignments, events, log, checkInterval: Number(checkInterval), affinity: timed };
const ovs = new OvsAffinity(ovsParts(directory, changes));
assignments.subscribe(() => {
  queueMicrotask(() => {
    if (movedAt > 0n) process.send?.({ done: movedAt.toString() });
    movedAt = 0n;
  });
});
process.send?.({ done: '0' });
const running = Promise.all([assignments.run(stop.signal), ovs.run(stop.signal)]);
log.info('program started');
void running.then(() => process.exit(0));
