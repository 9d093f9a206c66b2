import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { CgroupTree } from '../../node-agent/processes/cgroup-tree.ts';
import { commandLineOf, commOf, ProcThreads, parentOf, procThreads, startOf } from '../../node-agent/processes/proc.ts';
import { UnreadableError } from '../../node-agent/processes/readable.ts';
import { eventually, tempDirectories, writeTree } from './support.ts';

const newDirectory = tempDirectories();
const UID = '0a1b2c3d-1111-2222-3333-444455556666';
const SLICE = `pod${UID.replaceAll('-', '_')}.slice`;
const ID = 'c0ffee';
const POPULATED = 'populated 1\nfrozen 0\n';
const EMPTY = 'populated 0\nfrozen 0\n';

/** A tree of version 2 with the given files. */
function v2(files: Readonly<Record<string, string>>): string {
  const root = newDirectory();
  writeTree(root, { 'cgroup.controllers': 'cpuset cpu memory\n', ...files });
  return root;
}

/** A tree of version 1 with the given files below the cpuset controller. */
function v1(files: Readonly<Record<string, string>>): string {
  const root = newDirectory();
  mkdirSync(join(root, 'cpuset'), { recursive: true });
  writeTree(join(root, 'cpuset'), files);
  return root;
}

const lists = (sets: readonly CpuSet[] | undefined) => sets?.map(String);

describe('cgroups of pods: the place of a container', () => {
  const places: [name: string, path: string][] = [
    ['cgroupfs, Guaranteed', `kubepods/pod${UID}/${ID}`],
    ['cgroupfs, Burstable', `kubepods/burstable/pod${UID}/${ID}`],
    ['cgroupfs, BestEffort', `kubepods/besteffort/pod${UID}/${ID}`],
    ['systemd, Guaranteed', `kubepods.slice/kubepods-${SLICE}/cri-containerd-${ID}.scope`],
    ['systemd, Burstable', `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-${SLICE}/crio-${ID}.scope`],
    ['systemd, BestEffort', `kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-${SLICE}/crio-${ID}.scope`],
    ['below the kubelet’s own --cgroup-root, cgroupfs', `kubelet/kubepods/pod${UID}/${ID}`],
    ['below it, systemd', `kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-${SLICE}/cri-containerd-${ID}.scope`],
  ];
  for (const [name, path] of places) {
    it(name, () => {
      const root = v2({ [`${path}/cgroup.procs`]: '1\n' });
      assert.equal(new CgroupTree(root).container(UID, ID), join(root, path));
      const old = v1({ [`${path}/cgroup.procs`]: '1\n' });
      assert.equal(new CgroupTree(old).container(UID, ID), join(old, 'cpuset', path));
    });
  }

  it('includes crun’s own level below it', () => {
    const root = v2({ [`kubepods/pod${UID}/${ID}/container/cgroup.procs`]: '1\n' });
    assert.equal(new CgroupTree(root).container(UID, ID), join(root, `kubepods/pod${UID}/${ID}/container`));
  });

  it('is not the cgroup of its monitor, of another container, or a file', () => {
    const pod = `kubepods.slice/kubepods-${SLICE}`;
    const root = v2({
      [`${pod}/crio-conmon-${ID}.scope/cgroup.procs`]: '1\n',
      [`${pod}/crio-conmon-${ID}.scope/x`]: '',
      [`${pod}/cri-containerd-x${ID}.scope/cgroup.procs`]: '1\n',
      [`${pod}/${ID}-other.scope/cgroup.procs`]: '1\n',
      [`${pod}/a-${ID}.service/cgroup.procs`]: '1\n',
      [`${pod}/file-${ID}.scope`]: 'no directory',
    });
    assert.equal(new CgroupTree(root).container(UID, ID), undefined);
    assert.equal(new CgroupTree(root).container('another', ID), undefined);
  });

  it('is found if the kubelet’s cgroups are created after the agent starts', () => {
    const root = v2({});
    const tree = new CgroupTree(root);
    assert.equal(tree.container(UID, ID), undefined);
    assert.equal(tree.containers(), undefined);
    writeTree(root, { [`kubepods/pod${UID}/${ID}/cgroup.procs`]: '1\n' });
    assert.equal(tree.container(UID, ID), join(root, `kubepods/pod${UID}/${ID}`));
    assert.deepEqual(tree.containers(), { guaranteed: [], others: [] });
  });
});

describe('cgroups of pods: processes', () => {
  const FILES = { 'c/cgroup.procs': '7\n8\n', 'c/housekeeping/cgroup.procs': '8\n9\n' };
  const many = Array.from({ length: 10_000 }, (_, i) => i + 100_000);
  const more = many.map((id) => id + 50_000);
  const lines = (ids: readonly number[]) => `${ids.join('\n')}\n`;
  for (const [label, root, expected] of [
    ['of version 2 are those of the container only, which include its threaded cgroups', () => v2(FILES), [7, 8]],
    ['of version 1 include those of virt-handler’s cgroup, each once', () => v1(FILES), [7, 8, 9]],
    ['of version 1 may be in no other cgroup', () => v1({ 'c/cgroup.procs': '7\n8\n' }), [7, 8]],
    ['are empty for an empty cgroup', () => v2({ 'c/cgroup.procs': '' }), []],
    ['are undefined for a missing one', () => v2({}), undefined],
    [
      'are limited to the first 256 of each cgroup',
      () => v1({ 'c/cgroup.procs': lines(many), 'c/housekeeping/cgroup.procs': lines(more) }),
      [...many.slice(0, 256), ...more.slice(0, 256)],
    ],
  ] as const) {
    it(label, () => {
      const mount = root();
      const tree = new CgroupTree(mount);
      assert.deepEqual(tree.processes(join(mount, tree.version === 1 ? 'cpuset/c' : 'c')), expected);
    });
  }
});

describe('cgroups of pods: CPUs', () => {
  it('are the effective ones, not the requested ones', () => {
    const root = v2({ 'c/cpuset.cpus': '0-7\n', 'c/cpuset.cpus.effective': '0-3\n' });
    assert.equal(String(new CgroupTree(root).cpuset(join(root, 'c'))), '0-3');
    assert.equal(new CgroupTree(root).cpuset(join(root, 'gone')), undefined);
    const old = v1({ 'c/cpuset.cpus': '0-7\n', 'c/cpuset.effective_cpus': '4-5\n' });
    assert.equal(String(new CgroupTree(old).cpuset(join(old, 'cpuset/c'))), '4-5');
    const older = v1({ 'c/cpuset.cpus': '0-7\n' });
    assert.equal(String(new CgroupTree(older).cpuset(join(older, 'cpuset/c'))), '0-7');
  });

  it('are those of the nearest parent if the controller is disabled, within the root', () => {
    const root = v2({ 'kubepods/cpuset.cpus.effective': '2-3\n', 'kubepods/pod/c/cgroup.procs': '' });
    assert.equal(String(new CgroupTree(root).cpuset(join(root, 'kubepods/pod/c'))), '2-3');
    const bare = newDirectory();
    writeTree(bare, { 'cpuset.cpus.effective': '0-1', 'x/cgroup.controllers': '', 'x/c/cgroup.procs': '' });
    assert.equal(new CgroupTree(join(bare, 'x')).cpuset(join(bare, 'x/c')), undefined);
  });

  it('of virt-handler’s cgroup are read and written if it exists; it is never created', () => {
    const root = v2({ 'c/housekeeping/cpuset.cpus': '20', 'd/cgroup.procs': '' });
    const tree = new CgroupTree(root);
    assert.equal(String(tree.housekeeping(join(root, 'c'))), '20');
    tree.setHousekeeping(join(root, 'c'), CpuSet.parse('20-22'));
    assert.equal(readFileSync(join(root, 'c/housekeeping/cpuset.cpus'), 'utf8'), '20-22');
    assert.equal(tree.housekeeping(join(root, 'd')), undefined);
    assert.throws(() => tree.setHousekeeping(join(root, 'd'), CpuSet.parse('1')), /ENOENT/);
    mkdirSync(join(root, 'd/housekeeping'));
    assert.throws(() => tree.setHousekeeping(join(root, 'd'), CpuSet.parse('1')), /ENOENT/);
    assert.equal(existsSync(join(root, 'd/housekeeping/cpuset.cpus')), false);
  });
});

describe('cgroups of pods: the CPUs of all running containers', () => {
  const container = (path: string, cpus: string, events = POPULATED) => ({
    [`${path}/cpuset.cpus`]: cpus,
    [`${path}/cgroup.events`]: events,
  });

  it('are listed for each Guaranteed pod, and each set once for other pods', () => {
    const root = v2({
      ...container('kubepods/poda1/a', '4-5\n'),
      ...container('kubepods/poda1/b', '4-5\n'),
      ...container('kubepods/burstable/poda2/a', '0-3\n'),
      ...container('kubepods/burstable/poda2/b', '0-3\n'),
      ...container('kubepods/besteffort/poda3/a', '0-3,6\n'),
      ...container('kubepods/besteffort/nopod/a', '7\n'),
      ...container('kubepods/else/poda4/a', '8\n'),
    });
    const sets = new CgroupTree(root).containers();
    assert.deepEqual(lists(sets?.guaranteed), ['4-5', '4-5']);
    assert.deepEqual(lists(sets?.others)?.sort(), ['0-3', '0-3,6']);
  });

  it('exclude cgroups without a process or without a cpuset', () => {
    const root = v2({
      ...container('kubepods/poda1/ended', '4\n', EMPTY),
      ...container('kubepods/poda1/unconfined', '\n'),
      ...container('kubepods/poda1/absent', '6\n'),
      'kubepods/poda1/unlisted/cgroup.events': POPULATED,
    });
    assert.deepEqual(lists(new CgroupTree(root).containers()?.guaranteed), ['6']);
  });

  it('with crun are those of its own level, if set, or those of the container', () => {
    const root = v2({
      ...container('kubepods/poda1/a', '1\n'),
      'kubepods/poda1/a/container/cpuset.cpus': '2\n',
      ...container('kubepods/poda1/b', '3\n'),
      'kubepods/poda1/b/container/cpuset.cpus': '\n',
    });
    assert.deepEqual(lists(new CgroupTree(root).containers()?.guaranteed)?.sort(), ['2', '3']);
  });

  it('of version 1 count if the cgroup or one below it has processes', () => {
    const root = v1({
      'kubepods/poda1/a/cpuset.cpus': '1\n',
      'kubepods/poda1/a/cgroup.procs': '5\n',
      'kubepods/poda1/b/cpuset.cpus': '2\n',
      'kubepods/poda1/b/cgroup.procs': '',
      'kubepods/poda1/b/empty/cgroup.procs': '',
      'kubepods/poda1/b/housekeeping/cgroup.procs': '6\n',
      'kubepods/poda1/c/cpuset.cpus': '3\n',
      'kubepods/poda1/c/cgroup.procs': '',
      'kubepods/poda1/d/cpuset.cpus': '4\n',
    });
    assert.deepEqual(lists(new CgroupTree(root).containers()?.guaranteed)?.sort(), ['1', '2']);
  });

  it('come from cgroups at the top, before those one level down', () => {
    const root = v2({
      ...container('kubepods/poda1/a', '1\n'),
      ...container('other/kubepods/poda2/a', '2\n'),
      ...container('other/system/poda5/a', '5\n'),
      ...container('xkubepods/poda3/a', '3\n'),
      ...container('kubepodsx/poda4/a', '4\n'),
    });
    assert.deepEqual(lists(new CgroupTree(root).containers()?.guaranteed), ['1']);
    rmSync(join(root, 'kubepods'), { recursive: true });
    assert.deepEqual(lists(new CgroupTree(root).containers()?.guaranteed), ['2']);
  });
});

describe('cgroups of pods: files that cannot be read', () => {
  const faults: Record<string, (file: string) => void> = {
    'a symbolic link to itself (ELOOP)': (file) => symlinkSync(file, file),
    'a directory (EISDIR)': (file) => mkdirSync(file),
    'a torn list': (file) => writeFileSync(file, '0-'),
    'a huge list': (file) => writeFileSync(file, `${'1,'.repeat(20_000)}1`),
  };
  for (const [fault, make] of Object.entries(faults)) {
    it(`${fault}: the container’s CPUs are unknown, not those of a parent, and none counts as unused`, () => {
      const root = v2({
        'kubepods/cpuset.cpus.effective': '0-7\n',
        'kubepods/poda1/a/cgroup.events': POPULATED,
        'ovs.slice/cpuset.cpus.exclusive': '6\n',
      });
      const tree = new CgroupTree(root);
      const container = join(root, 'kubepods/poda1/a');
      assert.equal(String(tree.dedicatedToDpdk()), '6');
      rmSync(join(root, 'ovs.slice/cpuset.cpus.exclusive'));
      for (const file of ['kubepods/poda1/a/cpuset.cpus', 'ovs.slice/cpuset.cpus.exclusive']) make(join(root, file));
      make(join(container, 'cpuset.cpus.effective'));
      assert.throws(() => tree.cpuset(container), UnreadableError);
      assert.deepEqual([tree.containers(), String(tree.dedicatedToDpdk())], [undefined, '6']);
    });
  }

  it('without a free file descriptor (EMFILE), no process counts as ended', () => {
    const script = `
      import { openSync } from 'node:fs';
      import { hasEnded, identityOf, OnlineCpus, procThreads, startOf } from './node-agent/processes/proc.ts';
      const online = new OnlineCpus();
      const before = String(online.read());
      const start = startOf(process.pid);
      const outcome = (work) => { try { return String(work()); } catch (error) { return error.code; } };
      try { for (;;) openSync('/dev/null'); } catch {}
      console.log([
        outcome(() => procThreads.list(process.pid)), outcome(() => startOf(process.pid)),
        outcome(() => hasEnded({ pid: process.pid, start }, startOf)), outcome(() => online.read()) === before,
        outcome(() => identityOf(process.pid) > 0),
      ].join());`;
    const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', script];
    const output = execFileSync('sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], { encoding: 'utf8' });
    assert.equal(output.trim(), 'unreadable,unreadable,false,true,true');
  });
});

describe('processes with names of their own choice', () => {
  const temp = tempDirectories();
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /** A process with the given name and the given number of characters in its arguments. */
  const start = async (name: string, length = 10): Promise<number> => {
    const ready = join(temp(), 'ready');
    const script = `const { writeFileSync } = require('fs'); writeFileSync('/proc/self/comm', process.argv[1]);
      writeFileSync(${JSON.stringify(ready)}, ''); setInterval(() => {}, 1000)`;
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'NODE_OPTIONS'));
    const child = spawn(process.execPath, ['-e', script, name, 'x'.repeat(length)], { env });
    children.push(child);
    await eventually(() => existsSync(ready), 'the child runs');
    return child.pid ?? 0;
  };

  for (const name of ['a) R 1 (b', 'ovs-vswitchd ', 'q\nTgid:\t1', ') ) ) (', '\n']) {
    it(`${JSON.stringify(name)}: name, parent and start are read correctly`, async () => {
      const pid = await start(name);
      const shortened = name.slice(0, 15);
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
      const facts = [commOf(pid), procThreads.name(pid, pid), parentOf(pid), startOf(pid)];
      assert.deepEqual(facts, [shortened, shortened, process.pid, Number(fields.at(-31))]);
    });
  }

  it('a command line of 100 kB is read up to a limit', async () => {
    const pid = await start('long', 100_000);
    const text = commandLineOf(pid) ?? '';
    assert.ok(text.startsWith(process.execPath) && text.length <= 2048, `${text.length} characters`);
  });

  it('the first threads of a process with too many are listed, with its main thread', () => {
    const all = procThreads.list(process.pid);
    assert.ok(all.length > 4);
    assert.deepEqual(new ProcThreads(3).list(process.pid), [process.pid, ...all.slice(1, 3)]);
    assert.deepEqual(new ProcThreads(all.length + 10).list(process.pid).length, all.length);
  });
});
