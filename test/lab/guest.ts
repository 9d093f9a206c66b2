import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { readMemory } from '../../hardware/memory.ts';
import { readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { describeForKubelet } from '../../model/host-sysfs.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { resourcesOf, TEST_RESOURCES, type TestResource } from './devices.ts';
import { kubeletSettings } from './kubelet-settings.ts';
import { type KubeletProgram, versionIn } from './kubelets.ts';
import type { LabMachine } from './lab.ts';
import { execute } from './machine/commands.ts';
import type { RecordedNode } from './recording.ts';
import type { Round } from './rounds.ts';
import {
  type Checkpoints,
  CPU_CHECKPOINT,
  DEVICE_CHECKPOINT,
  MEMORY_CHECKPOINT,
  readCheckpoints,
  registeredDevices,
  type Snapshot,
} from './snapshot.ts';
import { SRIOV_UNIT, STOP_SRIOV, startSriov } from './sriov.ts';

/** The kubelet's root directory. */
export const KUBELET_ROOT = '/var/lib/kubelet';
const KUBELET_CONFIG = '/etc/lab/kubelet.yaml';
const KUBELET_OVERRIDE = '/run/systemd/system/kubelet.service.d/round.conf';
const DROP_INS = '/etc/lab/kubelet.conf.d';
const KUBELET_PROGRAM = '/opt/lab/bin/kubelet';
const OTHER_KUBELET = '/opt/plumbline-lab/kubelet';
const PLUGIN_UNIT = 'plumbline-lab-devices';
const PLUGIN_FILE = '/opt/plumbline-lab/device-plugin.cjs';
/** Seconds until a kubelet has started with the device plugin's devices. */
const COMES_UP = 180;
const STARTED_MARK = '/run/plumbline-lab-kubelet-start';
const CHECKPOINT = `${KUBELET_ROOT}/${DEVICE_CHECKPOINT}`;
const CUT = '\n=====\n';

export type Guest = ReturnType<typeof createGuest>;

export function createGuest(lab: LabMachine, signal: AbortSignal) {
  let original: string | undefined;
  /** Those that a kubelet must have when it has started. */
  let resources: readonly TestResource[] = TEST_RESOURCES;
  const checkpoints = async (): Promise<Checkpoints> => {
    const files = [CPU_CHECKPOINT, DEVICE_CHECKPOINT, MEMORY_CHECKPOINT];
    const commands = files.map((file) => `cat ${KUBELET_ROOT}/${file}`);
    const output = await lab.run(commands.join(`; printf '${CUT.replaceAll('\n', '\\n')}'; `));
    const [cpu = '', device = '', memory = ''] = output.split(CUT);
    return { cpu, device, memory };
  };
  const until = async (holds: () => Promise<boolean>, seconds: number) => {
    const end = monotonicSeconds() + seconds;
    for (;;) {
      if (await holds().catch(() => false)) return true;
      if (monotonicSeconds() > end) return false;
      await sleep(0.2, signal);
    }
  };
  /** Without the sockets, the device plugin waits for those of the next kubelet. */
  const stopKubelet = ['systemctl stop kubelet', `find ${KUBELET_ROOT}/device-plugins -type s -delete`];
  const stopPlugin = `(systemctl stop ${PLUGIN_UNIT} 2>/dev/null || true)`;
  /** All of a kubelet's data about pods, which another version may not be able to read. */
  const forget = `find ${KUBELET_ROOT} -maxdepth 1 -type f -name '*_state' -delete; rm -f ${KUBELET_ROOT}/${DEVICE_CHECKPOINT}`;
  const reconfigure = [`cat >${KUBELET_CONFIG}`, forget];
  const backToOwn = `(umount ${KUBELET_PROGRAM} 2>/dev/null || true)`;
  const startKubelet = async (what: string, between: readonly string[], input?: string) => {
    await lab.run([...stopKubelet, ...between, `touch ${STARTED_MARK}`, 'systemctl start kubelet'].join(' && '), input);
    const ready = await until(async () => {
      const texts = await checkpoints();
      const { defaultSet } = readCheckpoints(texts, new Map());
      const registered = registeredDevices(texts.device);
      const isNew = (await lab.run(`test ${CHECKPOINT} -nt ${STARTED_MARK} && echo new || true`)).trim() === 'new';
      return (
        isNew && defaultSet !== '' && resources.every(({ name, devices }) => registered.get(name) === devices.length)
      );
    }, COMES_UP);
    if (ready) return;
    const units = [PLUGIN_UNIT, SRIOV_UNIT, 'kubelet'].map(
      (unit) => `journalctl --no-pager --output=cat -n 12 -u ${unit}`,
    );
    const last = await lab.run(units.join('; '));
    throw new Error(`${what}: the kubelet or its device plugin did not come up in ${COMES_UP} s\n${last}`);
  };
  const useSource = async ({ settings }: Pick<Round, 'settings'>, configuration: Readonly<Record<string, unknown>>) => {
    await lab.run(`rm -rf ${KUBELET_OVERRIDE} ${DROP_INS}`);
    if (settings !== undefined) {
      const { apiVersion, kind, ...fields } = configuration;
      const entries = Object.entries(fields);
      const half = Math.ceil(entries.length / 2);
      for (const [name, part] of [
        ['10-first', entries.slice(0, half)],
        ['20-second', entries.slice(half)],
      ] as const) {
        const text = stringify({ apiVersion, kind, ...Object.fromEntries(part) });
        await lab.run(`mkdir -p ${DROP_INS} && cat >${DROP_INS}/${name}.conf`, text);
      }
      const unit = (await lab.run('cat /etc/systemd/system/kubelet.service')).match(/^ExecStart=.*$/m)?.[0] ?? '';
      const command = unit.replace(`--config=${KUBELET_CONFIG}`, `"--config-dir=${DROP_INS}"`);
      await lab.run(
        `mkdir -p $(dirname ${KUBELET_OVERRIDE}) && cat >${KUBELET_OVERRIDE}`,
        `[Service]\nExecStart=\n${command}\n`,
      );
    }
    await lab.run('systemctl daemon-reload');
  };
  return {
    hardware: () => readGuestHardware(lab),
    kubeletVersion: async () => versionIn(await lab.run(`${KUBELET_PROGRAM} --version`), KUBELET_PROGRAM),
    /** Stops the kubelet and replaces its program; no pod may run. @throws Error if the guest cannot run it */
    async replaceKubelet({ path, version }: KubeletProgram) {
      await lab.run([...stopKubelet, backToOwn].join(' && '));
      await lab.copy(path, OTHER_KUBELET);
      await lab.run(`mount --bind ${OTHER_KUBELET} ${KUBELET_PROGRAM}`);
      const found = versionIn(await lab.run(`${KUBELET_PROGRAM} --version`), KUBELET_PROGRAM);
      if (found !== version) throw new Error(`the guest's kubelet is ${found}, not ${version}`);
    },
    async startPlugin(bundle: string) {
      await lab.run(stopPlugin);
      await lab.copy(bundle, PLUGIN_FILE);
      await lab.run(`systemd-run --quiet --collect --unit=${PLUGIN_UNIT} -p Restart=always node ${PLUGIN_FILE}`);
    },
    /** Starts the kubelet with empty state; no pod may own CPUs. @param version of the kubelet */
    async configure(round: Round, version: string) {
      original ??= await lab.run(`cat ${KUBELET_CONFIG}`);
      if (round.sriov) await startSriov(lab, process.env);
      else await lab.run(STOP_SRIOV);
      resources = resourcesOf(round);
      const configuration = configured(original, round, version);
      await useSource(round, configuration);
      await startKubelet(`round ${round.name}`, reconfigure, stringify(configuration));
    },
    restart: () => startKubelet('restart', []),
    async restore() {
      if (original === undefined) return;
      await useSource({}, {});
      await lab.run(
        [stopPlugin, STOP_SRIOV, ...stopKubelet, backToOwn, ...reconfigure, 'systemctl start kubelet'].join(' && '),
        original,
      );
    },
    /** Reads the kubelet's checkpoints until `expected` holds, or returns the last ones after `seconds`. */
    async settled(names: ReadonlyMap<string, string>, expected: (found: Snapshot) => boolean, seconds: number) {
      let last: Snapshot | undefined;
      await until(async () => {
        last = readCheckpoints(await checkpoints(), names);
        return expected(last);
      }, seconds);
      if (!last) throw new Error(`the kubelet's checkpoints could not be read for ${seconds} s`);
      return last;
    },
  };
}

const kubeletConfig = z.looseObject({ kind: z.literal('KubeletConfiguration') });
type KubeletConfig = z.infer<typeof kubeletConfig>;

function configured(text: string, round: Round, version: string): KubeletConfig {
  return { ...kubeletConfig.parse(parse(text)), ...kubeletSettings(round, version) };
}

const FILES = [
  'cpu/online',
  'cpu/present',
  'cpu/cpu[0-9]*/topology',
  'cpu/cpu[0-9]*/cache',
  ...['cpulist', 'distance', 'hugepages', 'meminfo'].map((name) => `node/node[0-9]*/${name}`),
  'node/online',
];

async function readGuestHardware(lab: LabMachine): Promise<Pick<RecordedNode, 'host' | 'memory' | 'offline'>> {
  const root = await mkdtemp(join(tmpdir(), 'plumbline-lab-sysfs-'));
  try {
    // Files of sysfs report 4096 bytes: an archive needs a copy with the real length.
    const copied = `cp -r --parents ${FILES.map((file) => `devices/system/${file}`).join(' ')} "$copy" 2>/dev/null || true`;
    const line = `copy=$(mktemp -d) && cd /sys && (${copied}) && tar -C "$copy" -cz . | base64 && rm -r "$copy"`;
    await execute('tar', ['-C', root, '-xz'], { input: Buffer.from(await lab.run(line), 'base64') });
    const host = describeForKubelet(await readSysfs(root));
    const memory = await readMemory(
      root,
      host.cells.map(({ id }) => id),
    );
    const offline = (await readOffline(root)).toString();
    return { host, memory, ...(offline !== '' && { offline }) };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
