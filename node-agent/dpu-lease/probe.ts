import { createConnection } from 'node:net';
import { join } from 'node:path';
import { findDaemons, isMissing, readPid } from '../open-vswitch/daemons.ts';

/** Checks whether the DPU is healthy. Resolves to undefined, or to the reason why it is not. */
export type Probe = (signal: AbortSignal) => Promise<string | undefined>;

/** Deadline in seconds for a daemon's answer; its main loop runs many times a second. */
const ANSWER_WITHIN = 2;

/**
 * Checks that both daemons of Open vSwitch run and answer: ovsdb-server on its database socket, ovs-vswitchd on its
 * control socket. A process that hangs exists but renews nothing.
 */
export function createOvsProbe(rundir: string, answerWithin = ANSWER_WITHIN): Probe {
  return async (signal) => {
    // A DPU's agent has a PID namespace of its own.
    const missing = findDaemons(rundir)
      .filter(isMissing)
      .filter(({ code }) => code !== 'hidden');
    if (missing.length > 0) return missing.map(({ message }) => message).join('; ');
    const ask = async (name: string, socket: string, method: string) => {
      const path = join(rundir, socket);
      const problem = await callOnce(path, method, answerWithin, signal);
      return problem === undefined ? undefined : `${name} does not answer on ${path}: ${problem}`;
    };
    try {
      const pid = readPid(join(rundir, 'ovs-vswitchd.pid'));
      const answers = await Promise.all([
        ask('ovsdb-server', 'db.sock', 'list_dbs'),
        ask('ovs-vswitchd', `ovs-vswitchd.${pid}.ctl`, 'version'),
      ]);
      const problems = answers.filter((problem) => problem !== undefined);
      return problems.length === 0 ? undefined : problems.join('; ');
    } catch (error) {
      return (error as Error).message;
    }
  };
}

/**
 * Sends one JSON-RPC call on a unix socket and accepts any answer. Resolves to the problem, if any. Source: RFC 7047
 * section 4; ovs-appctl(8) uses the same protocol on control sockets.
 */
function callOnce(path: string, method: string, seconds: number, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const done = (problem: string | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
      socket.destroy();
      resolve(problem);
    };
    const aborted = () => done('the agent is stopping');
    const timer = setTimeout(() => done(`no answer in ${seconds} s`), seconds * 1000);
    signal.addEventListener('abort', aborted, { once: true });
    socket.on('connect', () => socket.write(JSON.stringify({ id: 0, method, params: [] })));
    socket.on('data', () => done(undefined));
    socket.on('error', (error) => done(error.message));
    socket.on('close', () => done('it closed the connection'));
  });
}
