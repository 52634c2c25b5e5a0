"""What is measured of inputs, orders and softmax vectors: functions of arrays alone.

- ``fragility``: Eff, an input's share of noise that changes its class; fits of it by a distance.
- ``first_success``: the F-measure, what is tried until the first success; its mean, and Inc.
- ``faults``: fault detection rate, kinds of fault, APFD, area under the ROC curve.
- ``uncertainty``: PD, PV, PE, Gini, least confidence and margin of softmax vectors.
"""
