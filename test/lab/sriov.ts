import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SRIOV_PREFIX, SRIOV_RESOURCES } from './devices.ts';
import type { LabMachine } from './lab.ts';

/**
 * The real openshift/sriov-network-device-plugin in the guest. The machine has no NIC with SR-IOV, so the plugin's
 * devices are whole NICs: it offers those without virtual functions like virtual functions.
 */
const PROGRAM = 'sriovdp';
export const SRIOV_UNIT = 'plumbline-lab-sriov';
const HOME = '/opt/plumbline-lab/sriov';

/** Without it the plugin would look up names of PCI devices on the Internet. */
const PCI_IDS = '8086  Intel Corporation\n\t10d3  82574L\nC 02  Network controller\n\t00  Ethernet controller\n';
const CONFIG = {
  resourceList: SRIOV_RESOURCES.map(({ name, devices }) => ({
    resourceName: name.slice(SRIOV_PREFIX.length + 1),
    selectors: { pciAddresses: devices.map(({ id }) => id) },
  })),
};

export const STOP_SRIOV = `(systemctl stop ${SRIOV_UNIT} 2>/dev/null || true)`;

export function missingSriov(env: NodeJS.ProcessEnv): string {
  const folder = env['SRIOV_ASSETS'] ?? '';
  if (folder === '') return `name the folder with ${PROGRAM} in SRIOV_ASSETS`;
  return existsSync(join(folder, PROGRAM)) ? '' : `${folder} of SRIOV_ASSETS lacks ${PROGRAM}`;
}

export async function startSriov(lab: LabMachine, env: NodeJS.ProcessEnv): Promise<void> {
  await lab.run(`${STOP_SRIOV} && mkdir -p ${HOME}`);
  const isThere = (await lab.run(`test -x ${HOME}/${PROGRAM} && echo there || true`)).trim() === 'there';
  if (!isThere) await lab.copy(join(env['SRIOV_ASSETS'] ?? '', PROGRAM), `${HOME}/${PROGRAM}`);
  await lab.run(`cat >${HOME}/pci.ids`, PCI_IDS);
  await lab.run(`cat >${HOME}/config.json`, JSON.stringify(CONFIG));
  const unit = `systemd-run --quiet --collect --unit=${SRIOV_UNIT} -p Restart=always -E PCIDB_PATH=${HOME}/pci.ids`;
  const flags = `--config-file ${HOME}/config.json --resource-prefix ${SRIOV_PREFIX} -logtostderr`;
  await lab.run(`${unit} ${HOME}/${PROGRAM} ${flags}`);
}
