# Stands for a network. It is made of nothing but Terraform itself, so that it can run anywhere.
terraform {
  required_version = ">= 1.4"
}

variable "cidr" {
  type        = string
  description = "The addresses of the network"
}

resource "terraform_data" "network" {
  input = { cidr = var.cidr }
}

output "id" {
  description = "The network's id"
  value       = terraform_data.network.id
}

output "cidr" {
  description = "The addresses of the network"
  value       = terraform_data.network.output.cidr
}
