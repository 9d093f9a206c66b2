import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import {
  GATED,
  type GateCall,
  type GateResult,
  type SystemCall,
  useAgent,
  useGate,
  writeState,
} from '../gate-stage.ts';

const VERSIONS = '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}\n';
/** The state file refuses an ADD with this code. */
const BY_STATE = 11;

/** Descriptors that the program inherits to its delegate, leaves open, or closes although they are not open. */
function misusedDescriptors(calls: readonly SystemCall[]): string[] {
  const open = new Map<number, string>();
  const problems: string[] = [];
  for (const { name, args, result } of calls) {
    const text = `${name}(${args})`;
    if (/^(open|openat|socket|pipe2)$/.test(name) && result >= 0) {
      if (!args.includes('CLOEXEC')) problems.push(`inherits ${text}`);
      const pair = /^\[(\d+), (\d+)\]/.exec(args);
      for (const fd of pair === null ? [result] : [Number(pair[1]), Number(pair[2])]) open.set(fd, text);
    }
    if (name === 'close' && !open.delete(Number(args))) problems.push(`closes in vain ${text}`);
    if (/^-\d/.test(args) && /^(connect|sendto|recvfrom|read|write|fstat|fcntl)$/.test(name)) {
      problems.push(`uses without success ${text}`);
    }
  }
  return [...problems, ...[...open.values()].map((one) => `leaves open ${one}`)];
}

const codeOf = ({ code, stdout, json }: GateResult) => (code === 0 ? 0 : stdout === '' ? code : json()['code']);

describe('the CNI plugin and failing system calls', () => {
  needs('strace');
  const gate = useGate();
  before(() => {
    copyFileSync('/bin/cat', join(gate.binDir, 'echo'));
    chmodSync(join(gate.binDir, 'echo'), 0o755);
  });

  describe('its own input and output', () => {
    const cases: [fault: string, code: unknown, stdout: string | undefined][] = [
      ['read:error=EINTR:when=1', 0, VERSIONS],
      ['read:error=EINTR:when=2', 0, VERSIONS],
      ['read:error=EIO:when=1', 5, undefined],
      ['read:error=EIO:when=2', 5, undefined],
      ['write:error=EINTR:when=1', 0, VERSIONS],
      ['write:retval=0:when=1', 0, VERSIONS],
      // A part of the answer is written: the rest follows.
      ['write:retval=5:when=1', 0, VERSIONS.slice(5)],
      ['write:error=EIO', 1, ''],
    ];
    for (const [fault, code, stdout] of cases) {
      it(`${fault}: code ${code}`, async () => {
        const result = await gate.call({ verb: 'VERSION', conf: GATED, faults: [fault] });
        assert.equal(codeOf(result), code);
        if (stdout !== undefined) assert.equal(result.stdout, stdout);
      });
    }
  });

  describe('the state file', () => {
    const cases: [fault: string | undefined, code: number][] = [
      [undefined, BY_STATE],
      ['read:error=EINTR:when=3', BY_STATE],
      ['read:error=EINTR:when=4', BY_STATE],
      ['read:error=EIO:when=3', 0],
      ['read:error=EIO:when=4', 0],
      ['?fstat,?newfstatat:error=EIO', 0],
      ['?open,?openat:error=EMFILE', 0],
    ];
    for (const [fault, code] of cases) {
      it(`${fault ?? 'no fault'}: ${code === 0 ? 'is ignored' : 'counts'}, and the program closes each descriptor once`, async () => {
        writeState(gate.state, { dpu: 'not-ready', reason: 'why' });
        const result = await gate.call({ conf: GATED, faults: fault === undefined ? [] : [fault] });
        assert.equal(codeOf(result), code);
        assert.deepEqual(misusedDescriptors(result.calls), []);
      });
    }

    it('counts if root or the caller owns it', async function () {
      skipWithout('root', this);
      const owners: [owner: number, caller: number, code: number][] = [
        [0, 0, BY_STATE],
        [0, 1000, BY_STATE],
        [1000, 0, 0],
        [1000, 1000, BY_STATE],
        [1000, 1001, 0],
      ];
      for (const [owner, caller, code] of owners) {
        writeState(gate.state, { dpu: 'not-ready', reason: 'why' });
        chownSync(gate.state, owner, owner);
        const result = await gate.call({ conf: GATED, faults: [`geteuid:retval=${caller}`] });
        assert.equal(codeOf(result), code, `owner ${owner}, caller ${caller}`);
      }
    });
  });

  describe('the connection to the agent', () => {
    let question = '';
    useAgent(gate, (socket) =>
      socket.on('data', (chunk) => {
        if (question === '') socket.write('allow\n');
        question += chunk.toString('latin1');
      }),
    );
    beforeEach(() => {
      question = '';
      writeState(gate.state, { dpu: 'not-ready', reason: 'why' });
    });
    const call = async (faults: readonly string[]) => {
      const result = await gate.call({ conf: GATED, faults });
      assert.deepEqual(misusedDescriptors(result.calls), []);
      return result;
    };
    const sent = ({ calls }: GateResult) => calls.filter(({ name }) => name === 'sendto').length;

    const passing = [
      'sendto:error=EINTR:when=1',
      'sendto:error=EINTR:when=2',
      'sendto:error=EAGAIN:when=1',
      'sendto:retval=0:when=1',
      'recvfrom:error=EINTR:when=1',
      'recvfrom:error=EAGAIN:when=1',
      '?poll,?ppoll:error=EINTR:when=1',
    ];
    for (const fault of passing) {
      it(`${fault}: the program continues with the agent`, async () => {
        assert.equal(codeOf(await call([fault])), 0);
      });
    }

    const failing: [fault: string, sends: number][] = [
      ['socket:error=EMFILE', 0],
      ['connect:error=EAGAIN', 0],
      ['sendto:error=EPIPE:when=1', 1],
      ['sendto:error=EPIPE:when=2', 2],
      ['recvfrom:error=ECONNRESET', 2],
      ['recvfrom:retval=0', 2],
      ['?poll,?ppoll:error=ENOMEM:when=1', 2],
    ];
    for (const [fault, sends] of failing) {
      it(`${fault}: the state file decides after ${sends} parts of the request`, async () => {
        const result = await call([fault]);
        assert.deepEqual([codeOf(result), sent(result)], [BY_STATE, sends]);
      });
    }

    it('sends the rest of a request of which only a part was sent', async () => {
      const whole = async (faults: readonly string[]) => {
        question = '';
        assert.equal(codeOf(await call(faults)), 0);
        await eventually(() => question.endsWith(JSON.stringify(GATED)), 'the request has arrived');
        return question;
      };
      assert.equal(await whole(['sendto:retval=5:when=1']), (await whole([])).slice(5));
    });
  });

  describe('a delegate', () => {
    const conf = { ...GATED, cniVersion: '1.0.0', delegate: { type: 'echo' } };
    const CONF = '{"cniVersion":"1.0.0","name":"net","type":"echo"}';
    const delegated = async (faults: readonly string[], more: Partial<GateCall> = {}) => {
      const result = await gate.call({ verb: 'DEL', conf, faults, ...more });
      if (!more.inDelegate) assert.deepEqual(misusedDescriptors(result.calls), []);
      return result;
    };

    const passing = [
      '?poll,?ppoll:error=EINTR:when=1',
      'write:error=EINTR:when=1',
      'write:error=EAGAIN:when=1',
      'write:retval=0:when=1',
      'read:error=EINTR:when=3',
      'read:error=EAGAIN:when=3',
      'wait4:error=EINTR:when=1',
      // It does not know itself, and finds another.
      '?stat,?newfstatat:error=ENOENT:when=1',
    ];
    for (const fault of passing) {
      it(`${fault}: its answer is passed on`, async () => {
        const { code, stdout } = await delegated([fault]);
        assert.deepEqual([code, stdout], [0, CONF]);
      });
    }

    const failing: [fault: string, errno: number][] = [
      ['pipe2:error=EMFILE:when=1', 24],
      ['pipe2:error=EMFILE:when=2', 24],
      ['fcntl:error=EINVAL:when=1', 22],
      ['fcntl:error=EINVAL:when=2', 22],
      ['?fork,?clone:error=EAGAIN', 11],
    ];
    for (const [fault, errno] of failing) {
      it(`${fault}: is not executed, errno ${errno}`, async () => {
        const { code, json } = await delegated([fault]);
        const msg = `plumbline-gate: echo cannot be executed: errno ${errno}`;
        assert.deepEqual([code, json()['code'], json()['msg']], [1, 999, msg]);
      });
    }

    it('gets what the pipe accepts, and the end of its input after an error', async () => {
      assert.equal((await delegated(['write:retval=1:when=1'])).stdout, CONF.slice(1));
      const { code, stdout } = await delegated(['write:error=EIO:when=1']);
      assert.deepEqual([code, stdout], [0, '']);
    });

    it('has an exit status even if its answer cannot be read', async () => {
      const { code, stdout } = await delegated(['read:error=EIO:when=3']);
      assert.deepEqual([code, stdout], [0, '']);
    });

    it('has failed if its exit status is lost', async () => {
      const { code, json } = await delegated(['wait4:error=ECHILD']);
      assert.deepEqual([code, json()['code']], [1, 50]);
    });

    it('exits with 127 if the child process cannot become it', async () => {
      for (const fault of ['dup2:error=EBADF:when=1', 'dup2:error=EBADF:when=2', 'getppid:retval=1']) {
        const { code, stdout } = await delegated([fault], { inDelegate: true });
        assert.deepEqual([code, stdout], [127, ''], fault);
      }
      writeFileSync(join(gate.binDir, 'damaged'), '#!/nowhere\n', { mode: 0o755 });
      assert.equal((await delegated([], { conf: { ...conf, delegate: { type: 'damaged' } } })).code, 127);
    });
  });

  describe('the end of a delegate', () => {
    const status = (type: string, faults: readonly string[] = []) =>
      gate.call({ verb: 'STATUS', conf: { ...GATED, delegate: { type } }, faults });
    /** The signals and waits of a call. */
    const steps = ({ calls }: GateResult) =>
      calls.flatMap(({ name, args }) => {
        if (name === 'kill') return [`${args.split(', ')[1]} to ${args.startsWith('-') ? 'group' : 'process'}`];
        return name === 'wait4' || name.endsWith('nanosleep') ? [name.replace('clock_', '')] : [];
      });

    it('SIGTERM, then SIGKILL, each with time for it, to its process group and itself; a survivor is abandoned', async () => {
      gate.delegate('stuck', 'sleep 600');
      const result = await status('stuck', ['wait4:retval=0']);
      assert.deepEqual([result.code, result.json()['code']], [1, 50]);
      const each = (signal: string) => `${signal} to group, ${signal} to process(, wait4, nanosleep)+, wait4`;
      assert.match(steps(result).join(', '), new RegExp(`^${each('SIGTERM')}, ${each('SIGKILL')}$`));
    });

    it('no signal follows once it has ended', async () => {
      gate.delegate('obedient', 'exec sleep 600');
      const result = await status('obedient');
      assert.equal(result.json()['code'], 50);
      const ended = result.calls.findIndex(({ name, result }) => name === 'wait4' && result > 0);
      assert.ok(ended > 0);
      // STATUS is answered within a second.
      const waits = result.waits.map(({ most }) => most);
      assert.ok(Math.min(...waits) >= 0 && Math.max(...waits) <= 600, waits.join());
      assert.ok(!result.calls.slice(ended).some(({ name }) => name === 'kill'));
    });

    it('a closed output is not the end: its exit status counts, up to the deadline', async () => {
      gate.delegate('silent', 'exec >&-; exit 5');
      assert.equal((await status('silent')).code, 5);
      gate.delegate('staying', 'exec >&-; exec sleep 600');
      const outcome = await gate.outcome({ verb: 'STATUS', conf: { ...GATED, delegate: { type: 'staying' } } });
      assert.deepEqual(outcome, [1, 50, 'plumbline-gate: staying does not answer STATUS in time']);
    });

    it('follows the end of the program, even by SIGKILL', async () => {
      const file = join(gate.directory, 'pids');
      gate.delegate('orphan', `echo "$PPID $$" > '${file}.new'; mv '${file}.new' '${file}'; exec sleep 600`);
      const call = gate.call({ verb: 'DEL', conf: { ...GATED, delegate: { type: 'orphan' } } });
      await eventually(() => existsSync(file), 'the delegate runs');
      const [program, delegate] = readFileSync(file, 'utf8').trim().split(' ').map(Number) as [number, number];
      process.kill(program, 'SIGKILL');
      assert.equal((await call).code, null);
      await eventually(() => !isRunning(delegate), 'the delegate has ended');
    });
  });

  it('a delegate runs in its own process group, with the default for SIGPIPE', async () => {
    const script = `read -r pid _ _ _ group _ < /proc/$$/stat
[ "$pid" = "$group" ] && own=true || own=false
printf '{"own":%s,"ignored":"%s"}' "$own" "$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)"`;
    gate.delegate('curious', script);
    const { own, ignored } = (await gate.call({ conf: { ...GATED, delegate: { type: 'curious' } } })).json();
    assert.equal(own, true);
    assert.equal((BigInt(`0x${ignored}`) >> 12n) & 1n, 0n, 'SIGPIPE is ignored');
  });
});

/** Whether a process exists and is no zombie. */
function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
