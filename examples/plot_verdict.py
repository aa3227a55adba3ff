"""Which explainers find the words that decide? A planted corpus knows; the figure shows it.

python examples/plot_verdict.py [figure.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import assay
from assay.report.figures import VERDICT, figure, save

corpus = assay.corpus("planted:majority")
model = assay.train(corpus, encoder="lstm", seed=0)
result = assay.audit(model, corpus.test, audits=["truth"])
print(f"accuracy on {len(corpus.test)} texts: {result.record.summary['model']['test']['accuracy']:.3f}")
save(figure(result.record, VERDICT), Path(sys.argv[1] if len(sys.argv) > 1 else "verdict.svg"))
