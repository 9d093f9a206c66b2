import { formatMask } from '../../model/cpu-mask/mask.ts';
import { type MaskFit, maskHostOf, type SurveyedNode, surveyMask } from '../../model/placement/mask-fit.ts';
import type { Cause } from '../../model/vm-state/facts.ts';
import { REASONS, type Verdict } from '../../model/vm-state/reasons.ts';
import { maskedVm, pausedVm } from '../../model/vm-state/running.ts';
import type { ReportedHost } from '../support/hosts.ts';
import type { FoundVm, VerifyFacts } from './facts.ts';

/** The findings for one VM. Scripts get them in this form. */
export interface VmFinding {
  readonly namespace: string;
  readonly name: string;
  readonly kind: 'VirtualMachine' | 'VirtualMachineInstance';
  readonly mask: string;
  /** Nodes that could host it now, by name. */
  readonly nodes: readonly string[];
  /** Those of these nodes where `all` replaces the mask. */
  readonly fallBack: readonly string[];
  /** Nodes that it may run on and that cannot satisfy its mask. */
  readonly refused: readonly { readonly node: string; readonly reason: string; readonly message: string }[];
  /** Its node, and the state of its mask there, as in `plumbline explain`. */
  readonly running?: (Cause & { readonly node: string; readonly verdict: Verdict }) | undefined;
}

export interface Verification {
  readonly vms: readonly VmFinding[];
  /** VMs that no node can host. */
  readonly withoutNode: number;
  /** Number of nodes, and number of nodes with a report. */
  readonly nodes: number;
  readonly reporting: number;
}

/** Checks the mask of every VM against every node that the VM may run on. */
export function verifyMasks({ vms, nodes, hosts }: VerifyFacts): Verification {
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const surveyed = nodes.map(({ name, labels }) => surveyedNode(name, labels, byName.get(name)));
  const found = vms.map((vm) => findingOf(vm, surveyed, byName));
  return {
    vms: found,
    withoutNode: found.filter((one) => one.nodes.length === 0).length,
    nodes: nodes.length,
    reporting: surveyed.filter(({ host }) => host !== undefined).length,
  };
}

function surveyedNode(name: string, labels: ReadonlyMap<string, string>, host: ReportedHost | undefined): SurveyedNode {
  return { name, label: (key) => labels.get(key), host: host && maskHostOf(host.host) };
}

function findingOf(vm: FoundVm, nodes: readonly SurveyedNode[], hosts: ReadonlyMap<string, ReportedHost>): VmFinding {
  const verdicts = surveyMask(vm.masked, nodes).map(({ node, verdict }) => ({ node: node.name, verdict }));
  const refusals = verdicts.flatMap(({ node, verdict }) =>
    verdict.fits ? [] : [{ node, reason: verdict.reason, message: verdict.text }],
  );
  return {
    namespace: vm.namespace,
    name: vm.name,
    kind: vm.kind,
    mask: vm.masked.maskRequest === undefined ? vm.text : formatMask(vm.masked.maskRequest.mask),
    nodes: verdicts.flatMap(({ node, verdict }) => (verdict.fits ? [node] : [])),
    fallBack: verdicts.flatMap(({ node, verdict }) => (hasFallenBack(verdict) ? [node] : [])),
    refused: refusals,
    running: runningOf(vm, hosts),
  };
}

const hasFallenBack = (verdict: MaskFit): boolean => verdict.fits && verdict.fellBack;

function runningOf(
  { running, namespace, name, kind }: FoundVm,
  hosts: ReadonlyMap<string, ReportedHost>,
): VmFinding['running'] {
  if (running === undefined) return undefined;
  const { node, pods } = running;
  const said = hosts.get(node)?.status.pinning?.find(({ podUID }) => pods[podUID] === node);
  const facts = {
    namespace,
    name,
    kind: kind === 'VirtualMachine' ? ('vm' as const) : ('vmi' as const),
    node: { silent: false, assigned: [], pinning: said },
  };
  const cause = running.pause === undefined ? maskedVm(facts, node) : pausedVm(facts, node, running.pause);
  return { node, verdict: REASONS[cause.reason].verdict, ...cause };
}
