import { mergeHints, type TopologyPolicy } from '../../model/kubelet/merge.ts';
import type { Hint, ProviderHints } from '../../model/kubelet/provider.ts';
import type { NumaHint } from './kubelet-fixture.ts';
import { type Adapter, collect, differs } from './outcome.ts';

interface FixtureHint {
  readonly numaNodes: readonly number[] | null;
  readonly preferred: boolean;
}

interface MergeCase {
  readonly id: string;
  readonly description: string;
  readonly policy: TopologyPolicy;
  readonly preferClosestNUMA: boolean;
  readonly numaNodes: number;
  readonly providersHints: readonly (Readonly<Record<string, readonly FixtureHint[] | null>> | null)[];
  readonly expect: { readonly numaNodes: readonly number[] | null; readonly preferred: boolean };
  readonly derivedAdmit: boolean;
}

/** kubelet-topologymanager-merge-cases.json: the kubelet's own unit tests of the topology manager's policies. */
export const run: Adapter = (content) => {
  const { cases, numaDistances } = content as {
    cases: MergeCase[];
    numaDistances: Record<string, Record<string, number[]>>;
  };
  return collect(
    cases,
    (item) => `${item.id} (${item.description})`,
    (item) => {
      const rows = Object.values(numaDistances[item.numaNodes] ?? {});
      const closest = item.preferClosestNUMA && item.policy !== 'single-numa-node';
      const numa = { all: 2 ** item.numaNodes - 1, ...(closest && { distances: rows }) };
      const { hint, admit } = mergeHints(item.policy, numa, item.providersHints.map(providerOf));
      const merged = { numaNodes: nodesOf(hint), preferred: hint.preferred };
      return differs({ ...merged, admit }, { ...item.expect, admit: item.derivedAdmit });
    },
  );
};

function providerOf(provider: MergeCase['providersHints'][number]): ProviderHints {
  if (provider === null) return null;
  return new Map(Object.entries(provider).map(([resource, hints]) => [resource, hints?.map(hintOf) ?? null]));
}

function hintOf({ numaNodes, preferred }: FixtureHint): Hint {
  return { mask: numaNodes?.reduce((mask, node) => mask | (1 << node), 0) ?? null, preferred };
}

function nodesOf({ mask }: Hint): NumaHint['numaNodes'] | null {
  return mask === null ? null : Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => (mask & (1 << bit)) !== 0);
}
