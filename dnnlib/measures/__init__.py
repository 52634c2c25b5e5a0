"""What is measured of inputs, orders and softmax vectors: functions of arrays alone."""
