import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import type { HostDescription } from '../../model/host.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { TEST_RESOURCES } from './devices.ts';
import type { Lab } from './lab.ts';
import type { Round } from './rounds.ts';
import { CPU_CHECKPOINT, DEVICE_CHECKPOINT, readCheckpoints, registeredDevices, type Snapshot } from './snapshot.ts';

/** The kubelet's root directory. */
export const KUBELET_ROOT = '/var/lib/kubelet';
const KUBELET_CONFIG = '/etc/lab/kubelet.yaml';
const PLUGIN_UNIT = 'plumbline-lab-devices';
const PLUGIN_FILE = '/opt/plumbline-lab/device-plugin.cjs';
/** Parts of one command's output. */
const CUT = '\n=====\n';

/** The node as its own files show it. Every wait ends by its deadline or the signal. */
export interface Guest {
  host(): Promise<HostDescription>;
  /** Copies the bundled device plugin into the guest. */
  installPlugin(bundle: string): Promise<void>;
  /**
   * Starts the kubelet and the device plugin afresh under another configuration. No pod with CPUs of its own may be
   * there.
   */
  configure(round: Round): Promise<void>;
  /** Starts the kubelet and the device plugin again as they are, under the pods that run. */
  restart(): Promise<void>;
  /** Stops the device plugin and gives the kubelet back the configuration that it had before the first round. */
  restore(): Promise<void>;
  /** Reads the kubelet's checkpoints until `expected` holds; the last ones read if it does not within `seconds`. */
  settled(
    names: ReadonlyMap<string, string>,
    expected: (found: Snapshot) => boolean,
    seconds: number,
  ): Promise<Snapshot>;
}

export function createGuest(lab: Lab, signal: AbortSignal): Guest {
  /** The kubelet's configuration as it was found. */
  let original: string | undefined;
  const checkpoints = async () => {
    const files = [CPU_CHECKPOINT, DEVICE_CHECKPOINT].map((file) => `${KUBELET_ROOT}/${file}`);
    const output = await lab.run(`cat ${files[0]}; printf '${CUT.replaceAll('\n', '\\n')}'; cat ${files[1]}`);
    const [cpuText = '', deviceText = ''] = output.split(CUT);
    return { cpuText, deviceText };
  };
  const until = async (holds: () => Promise<boolean>, seconds: number) => {
    const end = monotonicSeconds() + seconds;
    for (;;) {
      if (await holds().catch(() => false)) return true;
      if (monotonicSeconds() > end) return false;
      await sleep(0.2, signal);
    }
  };
  const stopKubelet = [
    `(systemctl stop ${PLUGIN_UNIT} 2>/dev/null || true)`,
    'systemctl stop kubelet',
    `find ${KUBELET_ROOT}/device-plugins -type s -delete`,
  ];
  const reconfigure = [
    `cat >${KUBELET_CONFIG}`,
    `rm -f ${KUBELET_ROOT}/${CPU_CHECKPOINT} ${KUBELET_ROOT}/${DEVICE_CHECKPOINT}`,
  ];
  /** The plugin comes last: what it registers with a kubelet that is about to go, the next one would half remember. */
  const startKubelet = async (what: string, between: readonly string[], input?: string) => {
    const startPlugin = `systemd-run --quiet --collect --unit=${PLUGIN_UNIT} -p Restart=always node ${PLUGIN_FILE}`;
    await lab.run([...stopKubelet, ...between, 'systemctl start kubelet', startPlugin].join(' && '), input);
    const ready = await until(async () => {
      const { cpuText, deviceText } = await checkpoints();
      const { defaultSet } = readCheckpoints(cpuText, deviceText, new Map());
      const registered = registeredDevices(deviceText);
      return defaultSet !== '' && TEST_RESOURCES.every(({ name, devices }) => registered.get(name) === devices.length);
    }, 60);
    if (!ready) throw new Error(`${what}: the kubelet or its device plugin did not come up in 60 s`);
  };
  return {
    host: async () => hostOf(await lab.run('lscpu -p=CPU,CORE,SOCKET,NODE')),
    installPlugin: (bundle) => lab.copy(bundle, PLUGIN_FILE),
    async configure(round) {
      original ??= await lab.run(`cat ${KUBELET_CONFIG}`);
      await startKubelet(`round ${round.name}`, reconfigure, configured(original, round));
    },
    restart: () => startKubelet('restart', [`rm -f ${KUBELET_ROOT}/${DEVICE_CHECKPOINT}`]),
    async restore() {
      if (original === undefined) return;
      await lab.run([...stopKubelet, ...reconfigure, 'systemctl start kubelet'].join(' && '), original);
    },
    async settled(names, expected, seconds) {
      let last: Snapshot | undefined;
      await until(async () => {
        const { cpuText, deviceText } = await checkpoints();
        last = readCheckpoints(cpuText, deviceText, names);
        return expected(last);
      }, seconds);
      if (!last) throw new Error(`the kubelet's checkpoints could not be read for ${seconds} s`);
      return last;
    },
  };
}

const kubeletConfig = z.looseObject({ kind: z.literal('KubeletConfiguration') });

function configured(text: string, round: Round): string {
  return stringify({
    ...kubeletConfig.parse(parse(text)),
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: round.cpuOptions,
    reservedSystemCPUs: round.reserved,
    topologyManagerPolicy: round.topologyPolicy,
    topologyManagerScope: round.scope,
    // Not for what is decided, only for how soon it can be seen.
    cpuManagerReconcilePeriod: '1s',
    nodeStatusUpdateFrequency: '1s',
  });
}

/** Reads `lscpu -p=CPU,CORE,SOCKET,NODE`: one CPU a line. */
function hostOf(text: string): HostDescription {
  const rows = text
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').map(Number));
  const groups = (column: number) => {
    const ids = [...new Set(rows.map((row) => row[column] ?? 0))].sort((a, b) => a - b);
    return ids.map((id) => ({
      id,
      cpus: `${CpuSet.of(rows.filter((row) => row[column] === id).map((row) => row[0] ?? 0))}`,
    }));
  };
  return { cells: groups(3), cores: groups(1).map(({ cpus }) => cpus), sockets: groups(2) };
}
